import { Module } from '@nestjs/common';
import { TrustsAdminModule } from '../trusts/trusts-admin.module.js';
import { LogoutController } from './logout.controller.js';
import { BackChannelLogout } from './logout.service.js';

/** Back-channel logout. */
@Module({ imports: [TrustsAdminModule], controllers: [LogoutController], providers: [BackChannelLogout] })
export class LogoutModule {}
