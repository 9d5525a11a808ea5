import { Module } from '@nestjs/common';
import { PosternModule } from './postern.module.js';

/** The gateway, and modules of your own. */
@Module({ imports: [PosternModule.forRoot()] })
export class AppModule {}
