import { Module } from '@nestjs/common';
import { SessionListService } from './session-list.service.js';
import { SessionsController } from './sessions.controller.js';

/** Lists and ends sessions of the console. */
@Module({ controllers: [SessionsController], providers: [SessionListService] })
export class SessionsModule {}
