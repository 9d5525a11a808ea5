import { createPublicKey, generateKeyPairSync, hash, randomBytes } from 'node:crypto';
import { decodeProtectedHeader, jwtVerify } from 'jose';
import { amzDate, authorizationOf, signingKey } from '../../../src/providers/credentials/sigv4.js';
import { EgressProxy } from '../../support/egress-proxy.js';
import { eventually, timePasses } from '../../support/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway.js';
import { request } from '../../support/raw-client.js';
import { answer, type ReceivedRequest } from '../../support/raw-provider.js';
import { echo, Wire } from '../../support/wire.js';
import { issue, TokenServer } from './token-server.js';

const MASTER_KEY = randomBytes(32).toString('base64');
const CLIENT_SECRET = 'client-secret/with~odd+signs&=%';
const { privateKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
});

let wire: Wire;
let gateway: TestGateway;
let server: TokenServer;

beforeAll(async () => {
  wire = await Wire.start({ MASTER_KEY });
  gateway = wire.gateway;
});
afterAll(() => wire.stop());
beforeEach(async () => {
  wire.provider.script = echo;
  server = await TokenServer.start();
});

let names = 0;
async function add(auth: string, secret: string, settings: object, more: object = {}): Promise<string> {
  const name = `cloud-${++names}`;
  const fields = { name, url: wire.provider.url, auth, secret, auth_settings: settings, ...more };
  await gateway.admin('POST', '/providers', fields);
  return name;
}
const oauth2 = (settings: object = {}) =>
  add('oauth2', CLIENT_SECRET, { token_url: server.url, client_id: 'postern', scope: 'a b', ...settings });
const keyFile = (more: object = {}) =>
  JSON.stringify(
    {
      type: 'service_account',
      project_id: 'p',
      client_email: 'postern@p.iam.gserviceaccount.com',
      private_key: privateKey,
      private_key_id: 'kid-1',
      token_uri: server.url,
      ...more,
    },
    null,
    2,
  );
const google = (settings: object = {}) => add('google', keyFile(), settings);
const aws = (settings: object = {}, secret = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY') =>
  add('aws-sigv4', secret, { region: 'eu-central-1', access_key_id: 'AKIAIOSFODNN7EXAMPLE', ...settings });

const call = (name: string, body = '{}', headers: string[] = []) =>
  wire.call(`POST /p/${name}/v1/chat/completions`, headers, body);
const seen = () => wire.provider.requests.at(-1)!;
const headerOf = (req: ReceivedRequest, name: string) =>
  req.headers.filter(([key]) => key.toLowerCase() === name).map(([, value]) => value);
const probe = (name: string) =>
  gateway.admin<{ ok: boolean; code: string; message: string }>('POST', `/providers/${name}/test`);
const problemOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'nothing',
    (error: Error) => error.message,
  );

const CALLS = 200;

it.each([
  ['oauth2', () => oauth2()],
  ['google', () => google()],
])(
  `makes one token request for ${CALLS} calls at once, before the first token and after its end (%s)`,
  async (_, add) => {
    let issued = 0;
    server.respond = () => issue(`token-${++issued}`, issued === 1 ? 2 : 3_600);
    const name = await add();
    const authorization = wire.auth.split(': ')[1]!;
    const url = `${gateway.url}/p/${name}/v1/chat/completions`;
    const send = async () => {
      const response = await fetch(url, { method: 'POST', headers: { authorization }, body: '{}' });
      await response.arrayBuffer();
      return response.status;
    };
    expect(await send()).toBe(200);
    await timePasses(2_100, 'the token expires');
    server.delayMs = 500;
    const statuses = await Promise.all(Array.from({ length: CALLS }, send));
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect([server.asked.length, server.most]).toEqual([2, 1]);
    expect(headerOf(seen(), 'authorization')).toEqual(['Bearer token-2']);
  },
);

it.each([
  [
    'oauth2',
    () => oauth2(),
    (form: URLSearchParams) => `client_secret=${encodeURIComponent(form.get('client_secret')!)}`,
  ],
  ['google', () => google(), (form: URLSearchParams) => `assertion ${form.get('assertion')!}`],
])('does not repeat what it sent to a token endpoint that echoes it (%s)', async (_, add, echoed) => {
  server.respond = ({ form }) => ({
    status: 400,
    body: { error: 'invalid_request', error_description: `cannot read ${echoed(form)}` },
  });
  const { message } = await probe(await add());
  expect(message).toContain('invalid_request');
  expect(message).not.toContain('cannot read');
});

describe('oauth2', () => {
  it('requests one token with the client credentials, and sends it with each call in place of the key', async () => {
    const name = await oauth2();
    for (let i = 0; i < 3; i++) expect((await call(name, `{"i":${i}}`)).body.toString()).toBe(`{"i":${i}}`);
    expect(server.asked).toHaveLength(1);
    expect(Object.fromEntries(server.asked[0]!.form)).toEqual({
      grant_type: 'client_credentials',
      client_id: 'postern',
      client_secret: CLIENT_SECRET,
      scope: 'a b',
    });
    expect(server.asked[0]!.headers.authorization).toBeUndefined();
    expect(headerOf(seen(), 'authorization')).toEqual(['Bearer token-1']);
  });

  it('renews a token before its end without making a call wait, and with an expires_in that is a string', async () => {
    let issued = 0;
    server.respond = () => issue(`short-${++issued}`, '4');
    const name = await oauth2();
    const begun = performance.now();
    await call(name);
    // Half of four seconds later the next call starts the renewal and goes on with the old token.
    await timePasses(2_100, 'half the life of the token');
    server.delayMs = 200;
    await call(name);
    const isOver = performance.now() - begun > 4_000;
    expect(isOver || headerOf(seen(), 'authorization')[0] === 'Bearer short-1').toBe(true);
    await eventually(async () => {
      await call(name);
      return /^Bearer short-(?!1$)\d+$/.test(headerOf(seen(), 'authorization')[0] ?? '');
    });
    expect(server.most).toBe(1);
  });

  it('gets a new token for the next call when the provider rejects the one it has; the call itself is not repeated', async () => {
    const revoked = new Set(['Bearer token-1']);
    wire.provider.script = async (req) => {
      await req.body;
      const isRevoked = revoked.has(headerOf(req, 'authorization')[0]!);
      req.socket.write(answer(isRevoked ? '401 Unauthorized' : '200 OK', [], isRevoked ? 'no' : 'yes'));
    };
    const name = await oauth2();
    const sent = wire.provider.requests.length;
    const first = await call(name);
    expect([first.status, first.body.toString(), server.asked.length]).toEqual([401, 'no', 1]);
    expect(wire.provider.requests).toHaveLength(sent + 1);
    for (let i = 0; i < 3; i++) expect((await call(name)).status).toBe(200);
    expect(server.asked).toHaveLength(2);
    // It rejects whatever it is sent: no token request for each call.
    revoked.add('Bearer token-2');
    for (let i = 0; i < 5; i++) expect((await call(name)).status).toBe(401);
    expect(server.asked).toHaveLength(2);
  });

  it('answers 502 in the shape of the provider while there is no token, without a row, and recovers', async () => {
    server.respond = () => ({ status: 503, body: 'busy' });
    const name = await oauth2();
    const sent = wire.provider.requests.length;
    const rows = await eventually(async () => (await gateway.rowCount()) === sent && sent);
    wire.expectRejection(await call(name), 502, 'provider_credential_unavailable');
    const anthropic = await wire.call(`POST /p/${name}/v1/messages`, [], '{}');
    expect([anthropic.status, JSON.parse(anthropic.body.toString())]).toMatchObject([
      502,
      { type: 'error', error: { type: 'api_error', message: expect.any(String) as string } },
    ]);
    expect(wire.provider.requests).toHaveLength(sent);
    server.respond = () => issue('again');
    const recovered = await eventually(async () => {
      const reply = await call(name);
      return reply.status === 200 && reply;
    });
    expect(headerOf(seen(), 'authorization')).toEqual(['Bearer again']);
    expect(wire.provider.requests).toHaveLength(sent + 1);
    // Rows are written in their order: that of a later call shows that the rejected ones have none.
    await gateway.row(recovered.header('x-gateway-request-id')!);
    expect(await gateway.rowCount()).toBe(rows + 1);
  });

  it('says in a test why there is no token, without the secret', async () => {
    server.respond = ({ form }) => ({
      status: 401,
      body: { error: 'invalid_client', error_description: `wrong: ${form.get('client_secret')}` },
    });
    const result = await probe(await oauth2());
    expect(result).toMatchObject({ ok: false, code: 'credential_unavailable' });
    expect(result.message).toContain('status 401: invalid_client.');
    expect(JSON.stringify(result)).not.toContain('odd+signs');
    const name = await oauth2();
    await server.stop();
    expect((await probe(name)).message).toMatch(/did not respond \(refused\): .*[^.]\. Check/);
  });

  it.each([
    ['no token', { token_type: 'Bearer' }, 'without a usable access_token'],
    ['a token that no header can carry', { access_token: 'a\r\nb' }, 'without a usable access_token'],
    ['another kind of token', { access_token: 'a', token_type: 'mac' }, 'not a Bearer token'],
    ['a token that has expired', { access_token: 'a', expires_in: 0 }, 'already expired'],
    ['no JSON', '<html>', 'without a usable access_token'],
    ['a huge response', 'x'.repeat(70_000), 'more than 64 KiB'],
  ])('rejects %s', async (_, body, message) => {
    server.respond = () => ({ body });
    expect((await probe(await oauth2())).message).toContain(message);
  });

  it('keeps its token through changes of other providers, and drops it with a new secret', async () => {
    const name = await oauth2();
    await call(name);
    await oauth2();
    await gateway.admin('PATCH', `/providers/${name}`, { default: true });
    await gateway.admin('PATCH', `/providers/${name}`, { default: false });
    await call(name);
    expect(server.asked).toHaveLength(1);
    await gateway.admin('PATCH', `/providers/${name}`, { secret: 'another' });
    await call(name);
    expect(server.asked.map(({ form }) => form.get('client_secret'))).toEqual([CLIENT_SECRET, 'another']);
  });

  it('requests a token again after a restart, from the stored secret', async () => {
    const name = await oauth2();
    await call(name);
    const again = await startTestGateway({ MASTER_KEY }, gateway.database);
    const authorization = wire.auth.split(': ')[1]!;
    const url = `${again.url}/p/${name}/v1/chat/completions`;
    const response = await fetch(url, { method: 'POST', headers: { authorization }, body: '{}' });
    expect([response.status, server.asked.length]).toEqual([200, 2]);
    await again.stop();
  });

  it('does not show the secret or the token anywhere, and records their change by name only', async () => {
    const name = await oauth2();
    await call(name);
    await gateway.admin('PATCH', `/providers/${name}`, { secret: 'changed-secret' });
    const shown = JSON.stringify([
      await gateway.admin('GET', `/providers/${name}`),
      await gateway.admin('GET', '/audit'),
      await gateway.database.query('SELECT * FROM provider'),
      await gateway.database.query('SELECT * FROM request_log'),
    ]);
    expect(shown).toContain('"secret":"changed"');
    expect(shown).toContain('"client_id":"postern"');
    for (const text of ['odd+signs', 'changed-secret', 'token-1']) expect(shown).not.toContain(text);
  });

  it('drops a response header that has the token', async () => {
    const name = await oauth2();
    wire.provider.script = async (req) => {
      await req.body;
      const token = headerOf(req, 'authorization')[0]!;
      req.socket.write(answer('200 OK', [`X-Echo: ${token}`, 'X-Plain: yes'], 'ok'));
    };
    const reply = await call(name);
    expect([reply.header('x-echo'), reply.header('x-plain')]).toEqual([undefined, 'yes']);
  });
});

describe('the token endpoint', () => {
  it('is called by the rules for providers: no metadata address, no plain http to the world, no user info', async () => {
    for (const [url, message] of [
      ['http://169.254.169.254/latest', 'link-local'],
      ['http://93.184.216.34/token', 'https://'],
      ['https://user:pass@idp.example/token', 'user name'],
      ['ftp://idp.example/token', 'http'],
      ['https://idp.example/token#a', 'fragment'],
    ]) {
      expect(await problemOf(oauth2({ token_url: url }))).toContain(message);
    }
    // A name is checked when it resolves: this one leads back to the gateway itself.
    const name = await oauth2({ token_url: `${gateway.url}/v1/token` });
    expect((await probe(name)).message).toContain('leads back to this gateway');
  });

  it('is called through the egress proxy', async () => {
    const proxy = await EgressProxy.start();
    const behind = await startTestGateway(
      { MASTER_KEY, UPSTREAM_PROXY_URL: `http://${proxy.host}` },
      gateway.database,
    );
    const name = await oauth2();
    const authorization = wire.auth.split(': ')[1]!;
    const url = `${behind.url}/p/${name}/v1/chat/completions`;
    await eventually(async () => {
      const response = await fetch(url, { method: 'POST', headers: { authorization }, body: '{}' });
      return response.status === 200;
    });
    expect(proxy.heads.some((head) => head.startsWith(`CONNECT ${new URL(server.url).host} `))).toBe(true);
    await behind.stop();
    await proxy.stop();
  });
});

describe('google', () => {
  it('requests a token with an assertion that the service account has signed', async () => {
    const name = await google();
    expect((await call(name)).status).toBe(200);
    expect(headerOf(seen(), 'authorization')).toEqual(['Bearer token-1']);
    const { form } = server.asked[0]!;
    expect(form.get('grant_type')).toBe('urn:ietf:params:oauth:grant-type:jwt-bearer');
    const assertion = form.get('assertion')!;
    expect(decodeProtectedHeader(assertion)).toEqual({ alg: 'RS256', typ: 'JWT', kid: 'kid-1' });
    const { payload } = await jwtVerify(assertion, createPublicKey(privateKey), {
      issuer: 'postern@p.iam.gserviceaccount.com',
      audience: server.url,
    });
    expect(payload.scope).toBe('https://www.googleapis.com/auth/cloud-platform');
    expect(payload.exp! - payload.iat!).toBe(3_600);
    expect(await gateway.admin('GET', `/providers/${name}`)).toMatchObject({
      auth_settings: { client_email: 'postern@p.iam.gserviceaccount.com', token_url: server.url },
    });
  });

  it('repeats a rejected request with the time of the endpoint if the clocks differ, and says so if that fails', async () => {
    const ahead = new Date(Date.now() + 1_200_000);
    const iatOf = (form: URLSearchParams) =>
      (
        JSON.parse(Buffer.from(form.get('assertion')!.split('.')[1]!, 'base64url').toString()) as {
          iat: number;
        }
      ).iat;
    server.respond = ({ form }) => {
      const headers = { date: ahead.toUTCString() };
      if (Math.abs(iatOf(form) * 1000 - ahead.getTime()) < 300_000)
        return { ...issue('in time'.replace(' ', '-')), headers };
      return { status: 400, body: { error: 'invalid_grant', error_description: 'Invalid JWT' }, headers };
    };
    expect((await call(await google())).status).toBe(200);
    expect(headerOf(seen(), 'authorization')).toEqual(['Bearer in-time']);
    server.respond = () => ({
      status: 400,
      body: { error: 'invalid_grant' },
      headers: { date: ahead.toUTCString() },
    });
    const { message } = await probe(await google());
    expect(message).toMatch(/invalid_grant; this machine's clock is 1[12]\d\d s behind the token endpoint's/);
  });

  it.each([
    ['no JSON', () => 'AIza-a-key', 'not a JSON object'],
    ['an authorized user', () => keyFile({ type: 'authorized_user' }), '"type"'],
    ['no e-mail', () => keyFile({ client_email: undefined }), '"client_email"'],
    ['a broken key', () => keyFile({ private_key: privateKey.slice(0, 200) }), '"private_key"'],
    [
      'a token endpoint that may not be called',
      () => keyFile({ token_uri: 'http://169.254.169.254/' }),
      '"token_uri"',
    ],
  ])('rejects a key file with %s and does not repeat it', async (_, file, message) => {
    const problem = await problemOf(add('google', file(), {}));
    expect(problem).toContain(': 400 ');
    expect(problem.replaceAll('\\"', '"')).toContain(message);
    expect(problem).not.toContain(privateKey.slice(40, 80));
  });
});

describe('aws-sigv4', () => {
  const BEGUN = Date.now();
  const TOKEN = 'IQoJb3JpZ2luX2VjE//session+token==';

  /** Whether the request that the provider got has the signature that AWS would compute from it. */
  async function verify(req: ReceivedRequest, sessionToken?: string): Promise<boolean> {
    const [, target] = req.head.split(' ', 2);
    const body = (await req.body).bytes;
    const [authorization] = headerOf(req, 'authorization');
    const names = /SignedHeaders=([^,]+),/.exec(authorization!)![1]!.split(';');
    const [date] = headerOf(req, 'x-amz-date');
    const scope = { day: date!.slice(0, 8), region: 'eu-central-1', service: 'bedrock' };
    expect(Date.parse(isoOf(date!))).toBeLessThanOrEqual(Date.now());
    expect(Date.parse(isoOf(date!))).toBeGreaterThan(BEGUN - 1_000);
    expect(headerOf(req, 'x-amz-security-token')).toEqual(sessionToken === undefined ? [] : [sessionToken]);
    const signed = names.flatMap((name) => headerOf(req, name).flatMap((value) => [name, value]));
    const key = signingKey('wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY', scope);
    const method = req.head.split(' ', 1)[0]!;
    const expected = authorizationOf(
      { method, target: target!, headers: signed, payloadHash: hash('sha256', body, 'hex') },
      'AKIAIOSFODNN7EXAMPLE',
      key,
      scope,
      date!,
    );
    return authorization === expected;
  }
  const isoOf = (date: string) => date.replace(/^(....)(..)(..)T(..)(..)(..Z)$/, '$1-$2-$3T$4:$5:$6');

  it('has the clock of its signature in the form of AWS', () => {
    expect(amzDate(Date.UTC(2026, 0, 2, 3, 4, 5))).toBe('20260102T030405Z');
  });

  it('signs what is sent: the path with its escapes, the query, the body byte for byte', async () => {
    const name = await aws();
    const body = '{ "messages" : [ ] , "π": 1.0 }';
    const target = `/p/${name}/model/eu.anthropic.claude%3A0/converse?b=2&a=1&b=%2F&c`;
    const reply = await wire.call(
      `POST ${target}`,
      ['Content-Type: application/json', 'X-Twice: 1', 'X-Twice: 2'],
      body,
    );
    expect(reply.body.toString()).toBe(body);
    expect(await verify(seen())).toBe(true);
    expect(seen().head).toContain('POST /model/eu.anthropic.claude%3A0/converse?b=2&a=1&b=%2F&c HTTP/1.1');
    expect(headerOf(seen(), 'x-twice')).toEqual(['1', '2']);
    expect(seen().head).not.toContain('ptn_');
  });

  it('signs requests without a body, with an empty one and with one in chunks, which gets a length', async () => {
    const name = await aws();
    for (const [line, bytes, framing] of [
      ['GET', '', []],
      ['POST', '', ['0']],
      ['POST', 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n', ['5']],
    ] as const) {
      const head = `${line} /p/${name}/v1/x HTTP/1.1\r\nHost: h\r\n${wire.auth}\r\n`;
      const rest = bytes === '' ? `${line === 'POST' ? 'Content-Length: 0\r\n' : ''}\r\n` : bytes;
      const [reply] = await wire.send(head + rest);
      expect(reply!.status).toBe(200);
      expect(await verify(seen())).toBe(true);
      expect([headerOf(seen(), 'content-length'), headerOf(seen(), 'transfer-encoding')]).toEqual([
        framing,
        [],
      ]);
    }
  });

  it('signs for temporary credentials, as "aws configure export-credentials" prints them', async () => {
    const printed = {
      Version: 1,
      AccessKeyId: 'AKIAIOSFODNN7EXAMPLE',
      SecretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
      SessionToken: TOKEN,
    };
    const name = await aws({ access_key_id: undefined }, JSON.stringify(printed, null, 2));
    expect((await call(name)).status).toBe(200);
    expect(await verify(seen(), TOKEN)).toBe(true);
    const shown = JSON.stringify([
      await gateway.admin('GET', `/providers/${name}`),
      await gateway.admin('GET', '/audit'),
    ]);
    expect(shown).toContain('AKIAIOSFODNN7EXAMPLE');
    expect(shown).not.toMatch(/wJalrXUtnFEMI|IQoJb3JpZ2lu/);
  });

  it("replaces the headers of a client's own signature", async () => {
    const name = await aws();
    const theirs = [
      ...[
        'X-Amz-Date: 20200101T000000Z',
        'X-Amz-Security-Token: theirs',
        'x-amz-content-sha256: UNSIGNED-PAYLOAD',
      ],
      ...['X-Amzn-Bedrock-Trace: ENABLED', 'X-Amz-Meta: one', 'X-Amz-Meta:  two '],
    ];
    expect((await call(name, '{}', theirs)).status).toBe(200);
    expect(await verify(seen())).toBe(true);
    expect(headerOf(seen(), 'x-amz-content-sha256')).toEqual([]);
    expect(headerOf(seen(), 'x-amzn-bedrock-trace')).toEqual(['ENABLED']);
    expect(headerOf(seen(), 'x-amz-meta')).toEqual(['one', 'two']);
    expect(headerOf(seen(), 'authorization')[0]).toContain('SignedHeaders=host;x-amz-date;x-amz-meta,');
  });

  it('takes a body of 25 MiB and rejects a larger one, announced or not, before anything is sent', async () => {
    const name = await aws();
    const most = Buffer.alloc(26_214_400, 'a');
    expect((await call(name, most.toString())).body.length).toBe(most.length);
    expect(await verify(seen())).toBe(true);
    const sent = wire.provider.requests.length;
    const client = await wire.connect();
    client.send(
      `POST /p/${name}/v1/x HTTP/1.1\r\nHost: h\r\n${wire.auth}\r\nContent-Length: ${most.length + 1}\r\n\r\n`,
    );
    const announced = await client.answer();
    wire.expectRejection(announced, 413, 'request_too_large');
    expect(announced.body.toString()).toContain('25 MiB');
    client.destroy();
    const other = await wire.connect();
    other.send(
      `POST /p/${name}/v1/x HTTP/1.1\r\nHost: h\r\n${wire.auth}\r\nTransfer-Encoding: chunked\r\n\r\n${(most.length + 1).toString(16)}\r\n`,
    );
    other.send(most);
    other.send('a\r\n0\r\n\r\n');
    wire.expectRejection(await other.answer(), 413, 'request_too_large');
    other.destroy();
    expect(wire.provider.requests).toHaveLength(sent);
  });

  it('keeps idempotency and streamed bodies of other providers as they are', async () => {
    const reply = await wire.send(
      request('POST /v1/chat/completions', [wire.auth, 'X-Amz-Date: theirs'], '{}'),
    );
    expect(reply[0]!.status).toBe(200);
    expect(headerOf(seen(), 'x-amz-date')).toEqual(['theirs']);
    expect(headerOf(seen(), 'authorization')).toEqual(['Bearer sk-provider-secret-0123456789']);
  });

  it('says in a test what a rejected signature means, and that the clock is wrong if it is', async () => {
    const name = await aws();
    let date = new Date();
    wire.provider.script = async (req) => {
      await req.body;
      req.socket.write(answer('403 Forbidden', [`Date: ${date.toUTCString()}`], '{}'));
    };
    expect((await probe(name)).message).toContain(
      'rejected the signature, or the access key lacks a permission',
    );
    expect(await verify(seen())).toBe(true);
    date = new Date(Date.now() - 1_200_000);
    expect((await probe(name)).message).toContain("this machine's clock is 20 minutes ahead");
  });

  it.each([
    [{ region: undefined }, undefined, 'auth_settings.region: is needed'],
    [{ access_key_id: undefined }, undefined, 'auth_settings.access_key_id: is needed'],
    [{ token_url: 'https://x.example' }, undefined, 'token_url does not belong to aws-sigv4'],
    [{}, 'short', 'secret: must be an AWS secret access key'],
    [{}, '{"AccessKeyId":"AKIAIOSFODNN7EXAMPLE"}', 'secret: must be an AWS secret access key'],
    [{}, '{broken', 'secret: must be an AWS secret access key'],
  ])('rejects %j with the secret %j', async (settings, secret, message) => {
    const problem = await problemOf(aws(settings, secret));
    expect(problem).toContain(': 400 ');
    expect(problem).toContain(message);
  });
});

describe('a change', () => {
  it('needs the secret again with another token URL, client, access key or way of authentication', async () => {
    const name = await oauth2();
    const key = await aws();
    const plain = await add('bearer', 'sk-plain', {}, { auth_settings: undefined });
    for (const [of, change] of [
      [name, { auth_settings: { token_url: 'https://other.example/token' } }],
      [name, { auth_settings: { client_id: 'other' } }],
      [name, { auth: 'bearer' }],
      [key, { auth_settings: { access_key_id: 'AKIAIOSFODNN7OTHER00' } }],
      [key, { auth: 'x-api-key' }],
      [plain, { auth: 'oauth2', auth_settings: { token_url: server.url, client_id: 'c' } }],
      [plain, { auth: 'google' }],
    ] as const) {
      const problem = await problemOf(gateway.admin('PATCH', `/providers/${of}`, change));
      expect(problem).toContain('secret: must be sent again');
    }
    const bare = await add('bearer', 'x', {}, { secret: null, auth_settings: undefined });
    const change = { auth: 'oauth2', auth_settings: { token_url: server.url, client_id: 'c' } };
    expect(await problemOf(gateway.admin('PATCH', `/providers/${bare}`, change))).toContain(
      'is needed for oauth2',
    );
    expect(await problemOf(gateway.admin('PATCH', `/providers/${name}`, { secret: null }))).toContain(
      'is needed',
    );
  });

  it('of a region or scope does not, and takes effect at once', async () => {
    const key = await aws({ region: 'us-east-1' });
    await gateway.admin('PATCH', `/providers/${key}`, { auth_settings: { region: 'eu-west-3' } });
    await call(key);
    expect(headerOf(seen(), 'authorization')[0]).toContain('/eu-west-3/bedrock/aws4_request');
    const name = await oauth2();
    await gateway.admin('PATCH', `/providers/${name}`, { auth_settings: { scope: null } });
    await call(name);
    expect([...server.asked.at(-1)!.form.keys()]).toEqual(['grant_type', 'client_id', 'client_secret']);
  });

  it('of the way of authentication takes the new settings only', async () => {
    const name = await oauth2();
    const change = {
      auth: 'aws-sigv4',
      secret: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
      auth_settings: { region: 'eu-central-1', access_key_id: 'AKIAIOSFODNN7EXAMPLE' },
    };
    expect(await gateway.admin('PATCH', `/providers/${name}`, change)).toMatchObject({
      auth: 'aws-sigv4',
      auth_settings: { region: 'eu-central-1', service: 'bedrock', access_key_id: 'AKIAIOSFODNN7EXAMPLE' },
    });
    await call(name);
    expect(headerOf(seen(), 'authorization')[0]).toMatch(/^AWS4-HMAC-SHA256 /);
    const back = await gateway.admin('PATCH', `/providers/${name}`, { auth: 'bearer', secret: 'sk-x' });
    expect(back.auth_settings).toBeNull();
  });
});
