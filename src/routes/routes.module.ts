import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ProvidersModule } from '../providers/providers.module.js';
import { StoredRoute } from './route.entity.js';
import { RoutesController } from './routes.controller.js';
import { RoutesService } from './routes.service.js';
import { StoredRoutesService } from './stored-routes.service.js';

/** Providers made of providers. */
@Module({
  imports: [TypeOrmModule.forFeature([StoredRoute]), ProvidersModule],
  controllers: [RoutesController],
  providers: [RoutesService, StoredRoutesService],
  exports: [RoutesService, StoredRoutesService]
})
export class RoutesModule {}
