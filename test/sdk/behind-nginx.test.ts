import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import OpenAI, { toFile } from 'openai';
import { Agent } from 'undici';
import { OpenIdProvider } from '../admin/openid-provider.js';
import { Browser, poll, signInSettings, startDevice, USERS } from '../identity/device-flow.js';
import { exchange, statusWith } from '../identity/exchanges.js';
import { FakeIssuer } from '../identity/fake-issuer.js';
import { deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';
import { type LogRowView, startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, chunk, LAST_CHUNK, RawProvider, type ReceivedRequest } from '../support/raw-provider.js';
import { type Nginx, nginxMissing, startNginx } from '../support/front-nginx.js';
import { unusedPort } from '../support/unused-port.js';

const missing = nginxMissing();
/** An address of the client's own, other than the one nginx reaches the gateway from; only Linux has it unasked. */
const CLIENT = process.platform === 'linux' ? '127.0.0.2' : '127.0.0.1';
const STREAM =
  'HTTP/1.1 200 OK\r\nServer: the-provider\r\nX-Accel-Buffering: yes\r\nX-Accel-Redirect: /v1/models\r\n' +
  'Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n';
const event = (i: number) => chunk(`data: {"choices":[{"index":0,"delta":{"content":"${i}"}}]}\n\n`);
const REQUEST = { model: 'm', messages: [{ role: 'user' as const, content: 'x' }] };

function behindNginx(): void {
  let provider: RawProvider;
  let gateway: TestGateway;
  let nginx: Nginx;
  let dispatcher: Agent;
  let client: OpenAI;

  beforeAll(async () => {
    provider = await RawProvider.start(() => {});
    gateway = await startTestGateway({
      PROVIDER_URL: provider.url,
      MAX_BODY_BYTES: '25000000',
      TRUSTED_PROXIES: '127.0.0.1/32',
    });
    nginx = await startNginx([gateway.port]);
    dispatcher = new Agent({ localAddress: CLIENT, connect: { ca: nginx.certificate } });
    client = new OpenAI({
      baseURL: `${nginx.url}/v1`,
      apiKey: await gateway.createKey({ endpoints: 'all' }),
      // The types of Node's fetch know another release of undici.
      fetchOptions: { dispatcher: dispatcher as never },
      maxRetries: 0,
    });
  });
  afterAll(async () => {
    await dispatcher.destroy();
    await nginx.stop();
    await gateway.stop();
    await provider.stop();
  });

  it('passes each event on before the next one exists, whatever the provider tells nginx', async () => {
    const confirmed = Array.from({ length: 5 }, deferred);
    provider.script = async (req) => {
      await req.body;
      req.socket.write(STREAM);
      for (const [i, step] of confirmed.entries()) {
        req.socket.write(event(i));
        await step.promise;
      }
      req.socket.write(chunk('data: [DONE]\n\n'));
      req.socket.write(LAST_CHUNK);
    };
    const { data: stream, response } = await client.chat.completions
      .create({ ...REQUEST, stream: true })
      .withResponse();
    const seen: string[] = [];
    for await (const part of stream) {
      seen.push(part.choices[0]!.delta.content!);
      confirmed[seen.length - 1]!.resolve();
    }
    expect(seen).toEqual(['0', '1', '2', '3', '4']);
    expect(response.headers.get('server')).toBe('the-provider');
    expect(response.headers.get('x-gateway-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('carries an upload of 20 MB', async () => {
    let received: Promise<Buffer> | undefined;
    provider.script = async (req) => {
      received = req.body.then(({ bytes }) => bytes);
      await received;
      req.socket.write(answer('200 OK', ['Content-Type: application/json'], '{"id":"file-1"}'));
    };
    const content = randomBytes(20_000_000);
    const made = await client.files.create({ purpose: 'batch', file: await toFile(content, 'b.jsonl') });
    expect(made.id).toBe('file-1');
    const form = await received!;
    const start = form.indexOf('\r\n\r\n', form.indexOf('filename=')) + 4;
    const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
    expect(digest(form.subarray(start, start + content.length))).toBe(digest(content));
  });

  it('passes the beginning of an upload on before its end exists', async () => {
    const arrived = deferred();
    provider.script = async (req) => {
      await eventually(() => req.received() > 60_000);
      arrived.resolve();
      await req.body;
      req.socket.write(answer('200 OK', ['Content-Type: application/json'], '{"ok":true}'));
    };
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(Buffer.alloc(64_000, ' ')),
      async pull(controller) {
        await arrived.promise;
        controller.enqueue(Buffer.from('{}'));
        controller.close();
      },
    });
    expect(
      await client.post('/chat/completions', { body, headers: { 'content-type': 'application/json' } }),
    ).toMatchObject({ ok: true });
  });

  it('a body above MAX_BODY_BYTES is rejected by the gateway, in the shape that the SDK knows', async () => {
    const { error } = await client
      .post('/chat/completions', { body: { prompt: 'x'.repeat(26_000_000) } })
      .then(
        () => ({ error: null }),
        (error: unknown) => ({ error }),
      );
    expect(error).toMatchObject({ status: 413, code: 'request_too_large' });
  });

  it('a client that leaves in the middle of a stream ends the call at the provider', async () => {
    let seen: ReceivedRequest | undefined;
    provider.script = async (req) => {
      seen = req;
      await req.body;
      req.socket.write(STREAM);
      req.socket.write(event(0));
      await req.closed;
    };
    const { data: stream, response } = await client.chat.completions
      .create({ ...REQUEST, stream: true })
      .withResponse();
    for await (const part of stream) {
      expect(part.choices[0]!.delta.content).toBe('0');
      break;
    }
    await seen!.closed;
    const row = await gateway.row(response.headers.get('x-gateway-request-id')!);
    expect(row).toMatchObject({ outcome: 'client_aborted', status: 200, streamed: true });
  });

  it('a client that leaves before the response ends the call at the provider', async () => {
    const abort = new AbortController();
    const closed = new Promise<void>((resolve) => {
      provider.script = async (req) => {
        await req.body;
        abort.abort();
        await req.closed;
        resolve();
      };
    });
    const call = client.completions.create({ model: 'm', prompt: 'x' }, { signal: abort.signal });
    await expect(call).rejects.toBeInstanceOf(OpenAI.APIUserAbortError);
    await closed;
    const row = await eventually(async () => {
      const rows = await gateway.database.query<LogRowView>(
        "SELECT * FROM request_log WHERE path = '/v1/completions'",
      );
      return rows[0];
    });
    expect(row).toMatchObject({ outcome: 'client_aborted', status: null });
  });

  it('TRUSTED_PROXIES finds the client behind nginx, and not what the client claims', async () => {
    provider.script = async (req) => {
      await req.body;
      req.socket.write(answer('200 OK', ['Content-Type: application/json'], '{}'));
    };
    const claim = { headers: { 'X-Forwarded-For': '203.0.113.7' } };
    const { response } = await client.chat.completions.create(REQUEST, claim).withResponse();
    const row = await gateway.row(response.headers.get('x-gateway-request-id')!);
    // A client on the proxy's own address is as trusted as the proxy.
    expect(row.client_ip).toBe(CLIENT === '127.0.0.1' ? '203.0.113.7' : CLIENT);
    expect(provider.requests.at(-1)!.head).not.toMatch(/forwarded/i);
  });

  it('path and query arrive byte for byte, and no other path is reachable', async () => {
    await client.get('/models/a%2Fb%20c;d', { query: { q: 'x y' } });
    expect(provider.requests.at(-1)!.head).toMatch(/^GET \/v1\/models\/a%2Fb%20c;d\?q=x%20y HTTP/);
    const before = provider.requests.length;
    for (const path of ['/admin/v1/keys', '/health/ready', '/admin/..%2fv1/models', '/']) {
      const reply = await client.get(nginx.url + path).then(
        () => 200,
        (error: InstanceType<typeof OpenAI.APIError>) => [
          error.status,
          error.headers?.get('x-gateway-error'),
        ],
      );
      expect(reply).toEqual([404, null]);
    }
    expect(provider.requests.length).toBe(before);
  });
}

/** People and jobs get tokens, and people confirm at the admin port: with what the guide adds to deploy/nginx.conf. */
function tokensBehindNginx(): void {
  let provider: RawProvider;
  let issuer: OpenIdProvider;
  let jobs: FakeIssuer;
  let gateway: TestGateway;
  let nginx: Nginx;

  beforeAll(async () => {
    for (const level of ['warn', 'info'] as const) jest.spyOn(console, level).mockImplementation(() => {});
    provider = await RawProvider.start((req) => void req.socket.write(answer('200 OK', [], 'reached')));
    const port = await unusedPort();
    const adminPort = await unusedPort();
    const guide = readFileSync(join(process.cwd(), 'docs/guides/nginx.md'), 'utf8');
    const [pages] = /^location ~ [^]*?^}/m.exec(guide)!;
    nginx = await startNginx([port], (site) =>
      // Without TLS, the helpers of the sign-in need no certificate.
      site
        .replace('listen 443 ssl', 'listen 443')
        .replace(/(?=^ {2}location \/ )/m, `${pages.replace('8081', String(adminPort))}\n`),
    );
    issuer = await OpenIdProvider.start(nginx.url, USERS, { refresh: true });
    gateway = await startTestGateway({
      PROVIDER_URL: provider.url,
      ...signInSettings(issuer, nginx.url),
      PORT: String(port),
      ADMIN_PORT: String(adminPort),
    });
    await gateway.admin('PATCH', '/teams/default', { sign_in: {}, claude_code: { model: 'sonnet' } });
    jobs = await FakeIssuer.start();
    await gateway.admin('POST', '/keys', { team: 'default', name: 'ci', secret: false });
    const trust = { name: 'job', key: 'default/ci', issuer: jobs.url, audience: 'gateway' };
    await gateway.admin('POST', '/trusts', { ...trust, claims: { sub: ['job'] } });
  });
  afterAll(async () => {
    await gateway.stop();
    await jobs.stop();
    await issuer.stop();
    await nginx.stop();
    await provider.stop();
  });

  it.each(['', '/p/default'])('a person signs in from a client whose base is "%s"', async (base) => {
    const { body } = await startDevice(nginx, base);
    expect(body.verification_uri).toBe(`${nginx.url}/device`);
    const page = await new Browser(nginx).signIn(issuer, body.user_code, 'jane');
    expect(page.status).toBe(200);
    const { access_token: token } = await poll({ url: nginx.url + base }, body.device_code);
    expect(await statusWith(nginx, token!)).toBe(200);
    const headers = { authorization: `Bearer ${token}` };
    const settings = await fetch(`${nginx.url}${base}/managed/settings`, { headers });
    expect(await settings.json()).toMatchObject({ settings: { model: 'sonnet' } });
    const self = await fetch(`${nginx.url}/self/v1/key`, { headers });
    expect(await self.json()).toMatchObject({ name: 'jane@example.com' });
  });

  it('a job exchanges its identity token, and reads where', async () => {
    const { token } = await exchange(nginx, 'job', await jobs.sign({ sub: 'job' }));
    expect(await statusWith(nginx, token!)).toBe(200);
    const metadata = '/.well-known/oauth-authorization-server';
    for (const [path, issuedBy] of [
      [metadata, nginx.url],
      [`${metadata}/p/default`, `${nginx.url}/p/default`],
      [`/p/default${metadata}`, `${nginx.url}/p/default`],
    ] as const)
      expect(await (await fetch(nginx.url + path)).json()).toMatchObject({ issuer: issuedBy });
  });

  it('the rest of the admin port stays out of reach, however its path is written', async () => {
    const paths = [
      '/admin/v1/keys',
      '/console/',
      '/metrics',
      '/devices',
      '/admin/v1/keys/..%2foidc/callback',
    ];
    for (const path of paths) {
      const reply = await fetch(nginx.url + path);
      expect([path, reply.status, await reply.text()]).toEqual([path, 404, expect.stringContaining('nginx')]);
    }
  });
}

if (missing === null) {
  describe('behind a real nginx', behindNginx);
  describe('tokens behind a real nginx', tokensBehindNginx);
} else {
  it('was not compared with a real nginx', () => {
    process.stdout.write(`\nNOT COMPARED behind nginx: ${missing}\n`);
  });
}
