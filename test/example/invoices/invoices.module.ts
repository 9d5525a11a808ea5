import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { PosternModule } from '../../../src/index.js';
import { AddInvoiceLines1795000099001 } from './1795000099001-add-invoice-lines.js';
import { DailyTotalJob } from './daily-total.job.js';
import { InvoiceLine } from './invoice-line.entity.js';
import { InvoicesService } from './invoices.service.js';

@Module({
  imports: [
    PosternModule.forFeature({ name: 'invoices', migrations: [AddInvoiceLines1795000099001] }),
    TypeOrmModule.forFeature([InvoiceLine])
  ],
  providers: [InvoicesService, DailyTotalJob]
})
export class InvoicesModule {}
