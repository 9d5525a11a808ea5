import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { DataSource } from 'typeorm';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { GatewayError } from '../../errors/gateway-error.js';
import { OauthEndpoints, type Reply } from '../oauth/oauth-endpoints.service.js';

export const MANAGED_SETTINGS = '/managed/settings';
const TELEMETRY = ['/v1/metrics', '/v1/logs', '/v1/traces'];
/** Of one batch. */
const MAX_BYTES = 4_194_304;

const FIND = 'SELECT claude_code AS settings FROM team WHERE id = $1';

/** What Claude Code asks a gateway for besides calls, once a person has signed in. */
@Injectable()
export class ClaudeCode {
  constructor(
    private readonly dataSource: DataSource,
    private readonly endpoints: OauthEndpoints,
    @InjectSettings() env: Settings,
  ) {
    if (env.signIn === 'off') return;
    endpoints.add(`GET ${MANAGED_SETTINGS}`, (req) => this.settings(req), { needsToken: true });
    for (const path of TELEMETRY)
      endpoints.add(`POST ${path}`, (req, res) => discard(req, res), { needsToken: true });
  }

  /** The settings of the team, with their checksum, by which a client knows that nothing has changed. */
  private async settings(req: Request): Promise<Reply> {
    const grant = await this.endpoints.signedIn(req);
    if (grant === null) throw new GatewayError('not_found');
    const [team] = await this.dataSource.query<{ settings: object | null }[]>(FIND, [grant.teamId]);
    const settings = team?.settings ?? null;
    if (settings === null) throw new GatewayError('not_found');
    const checksum = `sha256:${hash('sha256', canonical(settings), 'hex')}`;
    const etag = `"${checksum}"`;
    const headers = { etag };
    if (req.headers['if-none-match'] === etag) return { status: 304, body: null, headers };
    return { status: 200, body: { uuid: grant.teamId, checksum, settings }, headers };
  }
}

/** Telemetry of a client: accepted, so that it is not sent again, and stored nowhere. */
function discard(req: Request, res: Response): Promise<Reply> {
  const tooLarge = { status: 413, body: { error: `The body is larger than ${MAX_BYTES} bytes.` } };
  if (Number(req.headers['content-length'] ?? 0) > MAX_BYTES) return Promise.resolve(tooLarge);
  if (req.headers.expect !== undefined && req.httpVersionMinor !== 0) res.writeContinue();
  let length = 0;
  return new Promise((resolve) => {
    req.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > MAX_BYTES) resolve(tooLarge);
    });
    req.once('end', () => resolve({ status: 200, body: {} }));
    // Nobody gets the response.
    req.once('close', () => resolve({ status: 400, body: null }));
  });
}

/** JSON with sorted members and no spaces. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(',')}}`;
}
