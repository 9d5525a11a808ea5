import { pipeline } from 'node:stream/promises';
import { Get, Logger, Param, Query, Req, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { describeError } from '../errors/describe-error.js';
import type { Page } from '../database/page.js';
import { type OpenExport, RequestLogExport } from './request-log.export.js';
import { RequestLogReader } from './request-log.reader.js';
import { AdminController } from '../admin/admin-controller.js';
import { CallFilters } from './call-filters.js';
import { ApiErrors } from '../admin/api-errors.js';
import {
  type CallFilter,
  type ExportOptions,
  exportSchema,
  requestFilterSchema,
  requestId,
  requestPageSchema,
  requestSchema,
} from './requests.schema.js';
import type { RequestView } from './request-view.js';

const STREAM = { schema: { type: 'string' as const } };

@AdminController('requests', {
  name: 'Requests',
  description: 'The request log: one row for each forwarded call.',
})
export class RequestsController {
  private readonly logger = new Logger('Admin');

  constructor(
    private readonly reader: RequestLogReader,
    private readonly exports: RequestLogExport,
    private readonly filters: CallFilters,
  ) {}

  @Get()
  @ApiOperation({ operationId: 'listRequests', summary: 'List forwarded calls, newest first' })
  @ApiOkResponse({ standardSchema: requestPageSchema, description: 'One page of calls.' })
  @ApiErrors(404)
  async list(@Query({ schema: requestFilterSchema }) filter: CallFilter): Promise<Page<RequestView>> {
    return this.reader.list(await this.filters.resolve(filter));
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
  @ApiOperation({
    operationId: 'exportRequests',
    summary: 'Export all rows as one stream of any length',
    description:
      'One object per line (`ndjson`, each a Request) or a table (`csv`). For an incremental export, send ' +
      '`x-recorded-until` of the response as `recorded_after` of the next export, and keep the last row of each ID. If ' +
      'the connection breaks before the end of the response, discard what was received.',
  })
  @ApiOkResponse({
    description: 'The rows.',
    headers: {
      'x-recorded-until': {
        description: '`recorded_after` of the next export.',
        schema: { type: 'string' },
      },
    },
    content: { 'application/x-ndjson': STREAM, 'text/csv': STREAM },
  })
  @ApiErrors(404)
  async export(
    @Query({ schema: exportSchema }) options: ExportOptions,
    @Req() req: Request,
    @Res() res: Response,
  ): Promise<void> {
    const order = await this.filters.resolve(options);
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
      this.logger.error(`An export broke off: ${describeError(error)}`);
      res.destroy();
    } finally {
      await opened?.close();
    }
  }

  @Get(':id')
  @ApiOperation({ operationId: 'getRequest', summary: 'Get a forwarded call' })
  @ApiOkResponse({ standardSchema: requestSchema, description: 'The call.' })
  @ApiErrors(404)
  get(@Param('id', { schema: requestId }) id: string): Promise<RequestView> {
    return this.reader.get(id);
  }
}
