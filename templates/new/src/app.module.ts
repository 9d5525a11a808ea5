import { Module } from '@nestjs/common';
import { PosternModule } from 'postern';
import { ClosingDayModule } from './closing-day/closing-day.module.js';

/** The gateway, and modules of your own. */
@Module({ imports: [PosternModule.forRoot(), ClosingDayModule] })
export class AppModule {}
