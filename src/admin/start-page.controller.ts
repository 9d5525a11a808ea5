import { Controller, Get, Req, Res } from '@nestjs/common';
import { PublicRoute } from '../platform/public-route.js';
import { ApiExcludeController } from './api-decorators.js';
import type { Request, Response } from 'express';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { GatewayError } from '../errors/gateway-error.js';
import { cliCommand } from '../platform/cli-command.js';

const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  vary: 'accept',
};

/**
 * `GET /` in a browser: goes to the console. On a listener without one it says what this is.
 * It is open to all and holds nothing about this gateway.
 */
@ApiExcludeController()
@PublicRoute()
@Controller()
export class StartPageController {
  constructor(@InjectSettings() private readonly env: Settings) {}

  /** @throws GatewayError not_found for a client that does not ask for HTML */
  @Get()
  show(@Req() req: Request, @Res() res: Response): void {
    if (req.accepts(['json', 'html']) !== 'html') throw new GatewayError('not_found');
    const { adminPort } = this.env;
    const hasDocs = adminPort === undefined || adminPort === req.socket.localPort;
    if (hasDocs && this.env.console === 'on') {
      res.set('vary', 'accept').redirect(302, '/console');
      return;
    }
    res.set(HEADERS).type('html').send(page(hasDocs));
  }
}

function page(hasDocs: boolean): string {
  const admin = hasDocs ? '<p>Admin API: <a href="/docs">/docs</a></p>\n' : '';
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Postern</title>
<h1>Postern is running</h1>
<p>Base URL for OpenAI SDKs: this address followed by <code>/v1</code>. For Anthropic's: this address.</p>
<p>API key: a gateway key. <code>${cliCommand('keys create --help')}</code></p>
${admin}<p>State: <a href="/health/ready">/health/ready</a></p>
</html>
`;
}
