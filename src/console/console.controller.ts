import { Controller, Get, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { ApiExcludeController } from '../admin/api-decorators.js';
import { PAGE_HEADERS } from '../admin/page-headers.js';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { GatewayError } from '../errors/gateway-error.js';
import { PublicRoute } from '../platform/public-route.js';
import { ConsoleFiles } from './console-files.js';
import { RELOAD_S, waitingPage } from './waiting-page.js';

const YEAR_S = 31_536_000;

/** Serves the console. Its files hold no data: what they show comes from the admin API, after signing in. */
@ApiExcludeController()
@PublicRoute()
@Controller('console')
export class ConsoleController {
  constructor(
    @InjectSettings() private readonly env: Settings,
    private readonly files: ConsoleFiles,
  ) {}

  @Get(['', '{*path}'])
  async serve(@Req() req: Request, @Res() res: Response): Promise<void> {
    if (this.env.console === 'off') throw new GatewayError('not_found');
    if (!this.files.isBuilt) return this.wait(res);
    const path = req.path.slice('/console/'.length);
    const file = this.files.find(path, (encoding) => req.acceptsEncodings(encoding, 'identity') === encoding);
    if (file === null) throw new GatewayError('not_found');
    res.set({
      ...PAGE_HEADERS,
      vary: 'accept-encoding',
      'cache-control': file.isImmutable ? `public, max-age=${YEAR_S}, immutable` : 'no-cache',
      ...(file.encoding !== null && { 'content-encoding': file.encoding }),
    });
    res.type(file.extension);
    await send(res, file.name, this.files.dist);
  }

  private wait(res: Response): void {
    res.set({ ...PAGE_HEADERS, 'cache-control': 'no-store', 'retry-after': String(RELOAD_S) });
    res.status(503).type('html').send(waitingPage(this.files.status));
  }
}

/** @throws the error of a file that cannot be read, unless the response has begun or the client has left */
function send(res: Response, name: string, root: string): Promise<void> {
  return new Promise((resolve, reject) => {
    res.sendFile(name, { root, cacheControl: false, acceptRanges: false }, (error?: Error) => {
      if (error === undefined || res.headersSent || res.destroyed) resolve();
      else reject(error);
    });
  });
}
