import { pipeline } from 'node:stream/promises';
import { constants, createGzip } from 'node:zlib';
import { Get, Logger, Param, Query, Req, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation } from '../admin/api-decorators.js';
import type { Request, Response } from 'express';
import { describeError } from '../errors/describe-error.js';
import type { Page } from '../database/page.js';
import { type OpenExport, RequestLogExport } from './request-log.export.js';
import { type PageSource, RequestLogReader } from './request-log.reader.js';
import { type Access, CurrentAccess, CurrentScope, type Scope } from '../admin/access/access.js';
import { Roles } from '../admin/access/role.js';
import { AdminController } from '../admin/admin-controller.js';
import { CallFilters } from './call-filters.js';
import { ExportSlots } from './export-slots.js';
import { ApiErrors } from '../admin/api-errors.js';
import {
  type CallFilter,
  type ExportOptions,
  exportSchema,
  requestFilterSchema,
  requestId,
  requestPageSchema,
  type ShownRequest,
  shownRequestSchema,
} from './requests.schema.js';
import type { RequestView } from './request-view.js';

/** The rows repeat themselves: the fastest level already makes an export several times smaller. */
const GZIP = { level: constants.Z_BEST_SPEED };

const STREAM = { schema: { type: 'string' as const } };

@Roles(['viewer', 'team'])
@AdminController('requests', {
  name: 'Requests',
  description: 'The request log: one row for each forwarded call.',
})
export class RequestsController {
  private readonly logger = new Logger('Admin');

  constructor(
    private readonly reader: RequestLogReader,
    private readonly exports: RequestLogExport,
    private readonly slots: ExportSlots,
    private readonly filters: CallFilters,
  ) {}

  @Get()
  @ApiOperation({ operationId: 'listRequests', summary: 'List forwarded calls, newest first' })
  @ApiOkResponse({ standardSchema: requestPageSchema, description: 'One page of calls.' })
  @ApiErrors(404)
  async list(
    @Query({ schema: requestFilterSchema }) filter: CallFilter,
    @CurrentScope() scope: Scope,
  ): Promise<Page<RequestView> & { source: PageSource }> {
    return this.reader.list(await this.filters.resolve(filter, scope));
  }

  /**
   * Exports all rows as one stream of any length, in the order of the list.
   *
   * For an incremental export, send `x-recorded-until` of the response as `recorded_after` of the next export: together
   * they contain each row once, however late it was committed. A row is exported again if a call recorded as
   * `interrupted` turns out to have ended otherwise: keep the last row of each ID. If the export fails, the connection is
   * destroyed, so that no client takes the response for complete.
   */
  @Get('export')
  @ApiOperation({
    operationId: 'exportRequests',
    summary: 'Export all rows as one stream of any length',
    description:
      'One object per line (`ndjson`, each a Request) or a table (`csv`). For an incremental export, send ' +
      '`x-recorded-until` of the response as `recorded_after` of the next export, and keep the last row of each ID. If ' +
      'the connection breaks before the end of the response, discard what was received. The response is compressed if the ' +
      'client accepts gzip. A token can run two exports at a time; one whose client reads nothing for a minute is broken off.',
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
  @ApiErrors(404, 429)
  async export(
    @Query({ schema: exportSchema }) options: ExportOptions,
    @CurrentAccess() access: Access,
    @Req() req: Request,
    @Res() res: Response,
  ): Promise<void> {
    const resolved = await this.filters.resolve(options, access.scope);
    // If the client disconnects, the running step is cancelled, also the first one.
    const disconnected = new AbortController();
    res.once('close', () => disconnected.abort());
    const release = this.slots.take(access);
    let opened: OpenExport | null = null;
    try {
      opened = await this.exports.open(resolved, disconnected.signal);
      const zips = req.acceptsEncodings(['gzip', 'identity']) === 'gzip';
      const name = `requests-${opened.until.toISOString().replace(/[:.]/g, '-')}`;
      res.writeHead(200, {
        'content-type': opened.contentType,
        'content-disposition': `attachment; filename="${name}.${opened.format}"`,
        'cache-control': 'no-store',
        vary: 'accept-encoding',
        ...(zips && { 'content-encoding': 'gzip' }),
        'x-recorded-until': opened.until.toISOString(),
      });
      const signal = opened.broken;
      if (req.method === 'HEAD') res.end();
      else if (zips) await pipeline(opened.chunks(), createGzip(GZIP), res, { signal });
      else await pipeline(opened.chunks(), res, { signal });
    } catch (error) {
      if (disconnected.signal.aborted) return;
      if (opened === null) throw error;
      this.logger.error(`An export failed: ${describeError(error)}`);
      res.destroy();
    } finally {
      await opened?.close();
      release();
    }
  }

  @Get(':id')
  @ApiOperation({ operationId: 'getRequest', summary: 'Get a forwarded call' })
  @ApiOkResponse({ standardSchema: shownRequestSchema, description: 'The call.' })
  @ApiErrors(404)
  async get(
    @Param('id', { schema: requestId }) id: string,
    @CurrentScope() scope: Scope,
  ): Promise<ShownRequest> {
    const call = await this.reader.get(id, scope);
    return { ...call, attempts: await this.reader.attempts(call) };
  }
}
