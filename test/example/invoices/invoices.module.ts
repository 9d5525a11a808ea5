import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { LogConsumersModule } from '../../../src/consumers/log-consumers.module.js';
import { DailyTotalJob } from './daily-total.job.js';
import { InvoiceLine } from './invoice-line.entity.js';
import { InvoicesService } from './invoices.service.js';

@Module({
  imports: [LogConsumersModule, TypeOrmModule.forFeature([InvoiceLine])],
  providers: [InvoicesService, DailyTotalJob]
})
export class InvoicesModule {}
