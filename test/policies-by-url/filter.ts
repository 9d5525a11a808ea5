import { createHmac, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { CallFacts } from '../../src/policies-by-url/decision/call-facts.js';
import { afterFile } from '../support/after-file.js';
import { ADMIN_TOKEN, type TestGateway } from '../support/gateway.js';
import { unusedPort } from '../support/unused-port.js';

export interface Asked {
  headers: IncomingHttpHeaders;
  path: string;
  body: Buffer;
  call: CallFacts;
}

type Respond = (res: ServerResponse, asked: Asked) => void;

export const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`;

/** Sends JSON with status 200. */
export function decide(decision: unknown): Respond {
  return (res) => res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(decision));
}

export const allow = decide({ allow: true });
export const deny = decide({ allow: false, code: 'pii_found', message: 'No card numbers, please.' });

const open = new Set<Filter>();
afterFile(async () => {
  await Promise.all([...open].map((filter) => filter.close()));
});

/** The filter of a company, on loopback. */
export class Filter {
  readonly asked: Asked[] = [];
  respond: Respond = allow;
  private server: Server | null = null;
  private port = 0;

  /** Listens, on the same port each time. */
  async listen(): Promise<this> {
    this.port ||= await unusedPort();
    this.server = createServer((req, res) => void this.serve(req, res));
    this.server.listen(this.port, '127.0.0.1');
    await once(this.server, 'listening');
    open.add(this);
    return this;
  }

  async close(): Promise<void> {
    open.delete(this);
    const { server } = this;
    this.server = null;
    server?.closeAllConnections();
    if (server !== null) await new Promise((closed) => server.close(closed));
  }

  get origin(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get url(): string {
    return `${this.origin}/decide?token=canary-filter-token`;
  }

  private async serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    res.on('error', () => {});
    const body = await buffer(req).catch(() => null);
    // The gateway has given it up.
    if (body === null) return;
    const header = String(req.headers['x-postern-call']);
    const call = JSON.parse(Buffer.from(header, 'base64url').toString()) as CallFacts;
    const asked = { headers: req.headers, path: req.url!, body, call };
    this.asked.push(asked);
    this.respond(res, asked);
  }
}

/** Whether the signature is that of Standard Webhooks over the header, a dot and the body. */
export function isSigned({ headers, body }: Asked, secret: string): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signature } = headers;
  const hmac = createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64'))
    .update(`${String(id)}.${String(at)}.${String(headers['x-postern-call'])}.`)
    .update(body);
  return signature === `v1,${hmac.digest('base64')}`;
}

export interface PolicyView {
  id: string;
  name: string;
  url: string;
  version: number;
  secret_state: string;
}

/** A timeout that a busy machine does not reach. */
export const LONG_MS = 30_000;

export function createPolicy(
  { admin }: TestGateway,
  { url }: Filter,
  settings: object = {},
): Promise<PolicyView> {
  return admin('POST', '/policies', {
    name: 'dlp',
    url,
    secret: newSecret(),
    timeout_ms: LONG_MS,
    ...settings,
  });
}

export async function removePolicies(postern: TestGateway): Promise<void> {
  const { data } = await postern.admin<{ data: PolicyView[] }>('GET', '/policies');
  for (const { id } of data) {
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
    const { status } = await fetch(`${postern.url}/admin/v1/policies/${id}`, { method: 'DELETE', headers });
    expect(status).toBe(204);
  }
}
