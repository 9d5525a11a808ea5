import { pipeline } from 'node:stream/promises';
import { Get, Logger, Param, Query, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { describeFault } from '../database/database-fault.js';
import type { Page } from '../database/page.js';
import { type OpenExport, RequestLogExport } from './request-log.export.js';
import { RequestLogReader } from './request-log.reader.js';
import type { RequestView } from './request-view.js';
import { AdminController } from '../admin/admin-controller.js';
import { CallFilters } from './call-filters.js';
import { checked } from '../admin/checked.js';
import { exportSchema, requestFilterSchema } from './requests.schema.js';

@AdminController('requests')
export class RequestsController {
  private readonly logger = new Logger('Admin');

  constructor(
    private readonly reader: RequestLogReader,
    private readonly exports: RequestLogExport,
    private readonly filters: CallFilters,
  ) {}

  @Get()
  async list(@Query() query: unknown): Promise<Page<RequestView>> {
    return this.reader.list(await this.filters.resolve(checked(requestFilterSchema, query)));
  }

  /**
   * Every row at once, in the order of the list, as one stream of any length.
   *
   * For incremental export give `x-recorded-until` of the answer as `recorded_after` of the next export: together they
   * hold each row once, however late its writer's commit was. A row comes again when a call taken for `interrupted`
   * turns out to have ended otherwise: keep rows by their id, the last one counts. An answer that breaks off is no
   * export: its connection is destroyed, so that no client takes it for complete.
   */
  @Get('export')
  async export(@Query() query: unknown, @Req() req: Request, @Res() res: Response): Promise<void> {
    const order = await this.filters.resolve(checked(exportSchema, query));
    // A client that leaves ends the step that is under way, the first one too.
    const left = new AbortController();
    res.once('close', () => left.abort());
    let opened: OpenExport | null = null;
    try {
      opened = await this.exports.open(order, left.signal);
      const name = `requests-${opened.until.toISOString().replace(/[:.]/g, '-')}`;
      res.writeHead(200, {
        'content-type': opened.contentType,
        'content-disposition': `attachment; filename="${name}.${opened.format}"`,
        'cache-control': 'no-store',
        'x-recorded-until': opened.until.toISOString(),
      });
      if (req.method === 'HEAD') res.end();
      else await pipeline(opened.chunks(), res, { signal: opened.broken });
    } catch (error) {
      if (left.signal.aborted) return;
      if (opened === null) throw error;
      this.logger.error(`An export broke off: ${describeFault(error)}`);
      res.destroy();
    } finally {
      await opened?.close();
    }
  }

  @Get(':id')
  get(@Param('id') id: string): Promise<RequestView> {
    return this.reader.get(id);
  }
}
