import { ForbiddenException, Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { SETTINGS } from '../../../src/config/config.module.js';
import type { Settings } from '../../../src/config/settings.js';
import { KeyLookupService } from '../../../src/auth/key-lookup.service.js';
import { defineGatewayError, GatewayError } from '../../../src/errors/gateway-error.js';
import { CallPolicies } from '../../../src/proxy/policies/call-policies.js';
import { CallPolicy } from '../../../src/proxy/policies/call-policy.js';
import { GatheringMemory } from '../../../src/proxy/stages/gathering.js';
import { PoliciesModule } from '../../../src/proxy/policies/policies.module.js';
import type { PolicyCall } from '../../../src/proxy/policies/policy-call.js';
import type { CallTicket, FinishedCall } from '../../../src/request-log/finished-call.js';
import { RequestLogService } from '../../../src/request-log/request-log.service.js';
import { addToApp } from '../../support/app-modules.js';
import { eventually, timePasses } from '../../support/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway.js';
import { setPatience } from '../../support/patience.js';
import { RawClient, request } from '../../support/raw-client.js';
import { answer, chunk, LAST_CHUNK, RawProvider, STREAM_HEAD } from '../../support/raw-provider.js';
import { Scrape } from '../../observability/scrape.js';

const TEAPOT = defineGatewayError('test_teapot', { status: 418, message: 'A teapot.', retryable: false });
const MAIN = '/v1/chat/completions';

let seen: unknown[] = [];
let ended: (FinishedCall | 'abandoned')[] = [];
/** What a call makes the policies do, as words of its header `X-Want`. */
type Want =
  /** Both report that they were asked. */
  | 'report-order'
  /** First reports what it knows of the call. */
  | 'report-facts'
  /** First needs the body. */
  | 'need-body'
  /** First decides when `first.release()` is called. */
  | 'wait-for-release'
  /** Second rejects the call, in one of three ways. */
  | 'reject'
  | 'throw-http-exception'
  | 'throw-bug';

const wants = (call: PolicyCall, want: Want) => String(call.headers['x-want']).split(' ').includes(want);

const ticket = (): CallTicket => ({
  settle: (call) => void ended.push(call),
  abandon: () => void ended.push('abandoned'),
});

@CallPolicy()
class Second implements CallPolicy {
  readonly order = 2;
  admit(call: PolicyCall): CallTicket | null {
    if (wants(call, 'report-order')) seen.push('second');
    if (wants(call, 'reject')) throw new GatewayError(TEAPOT);
    if (wants(call, 'throw-http-exception')) throw new ForbiddenException('Not today.');
    if (wants(call, 'throw-bug')) throw new Error('secret detail');
    return null;
  }
}

@CallPolicy()
class First implements CallPolicy {
  readonly order = 1;
  release: () => void = () => {};
  fails = false;
  appliesTo(grant: { idempotency: string; endpoints: string }): boolean {
    seen.push('asked');
    if (this.fails) throw new Error('secret detail');
    return grant.endpoints === 'all';
  }
  needsBody(call: PolicyCall): boolean {
    return wants(call, 'need-body');
  }
  admit(call: PolicyCall): CallTicket | Promise<CallTicket> {
    if (wants(call, 'report-order')) seen.push('first');
    if (wants(call, 'report-facts')) {
      const { grant, method, endpoint, provider, model, requestBytes, maxOutputTokens, parsedBody } = call;
      seen.push({
        key: grant.keyId,
        method,
        endpoint,
        provider,
        model,
        requestBytes,
        maxOutputTokens,
        parsedBody,
      });
      seen.push(call.body?.toString() ?? null);
    }
    if (wants(call, 'wait-for-release'))
      return new Promise((resolve) => {
        this.release = () => resolve(ticket());
      });
    return ticket();
  }
}

@Module({ imports: [PoliciesModule], providers: [Second, First] })
class TestPolicies {}

let provider: RawProvider;
let postern: TestGateway;
let first: First;
let key: string;
let replaying: string;

/** A guard for all controllers makes Nest's own router run calls. */
class NestRouter {}
Module({ providers: [{ provide: APP_GUARD, useValue: { canActivate: () => true } }] })(NestRouter);

describe.each([
  ['on the fast path', []],
  ["through Nest's router", [NestRouter]],
])('%s', (_, modules) => {
  beforeAll(async () => {
    provider = await RawProvider.start(async ({ body, socket }) => {
      const received = await body.catch(() => null);
      if (received === null) return;
      const usage = '{"model":"m-1","usage":{"prompt_tokens":8,"completion_tokens":2}}';
      socket.write(answer('200 OK', ['Content-Type: application/json'], usage));
    });
    addToApp(TestPolicies, ...modules);
    postern = await startTestGateway({ PROVIDER_URL: provider.url });
    first = postern.gateway.app.get(First, { strict: false });
    key = await postern.createKey({ endpoints: 'all' });
    replaying = await postern.createKey({ endpoints: 'all', idempotency: 'replay' });
  });
  afterAll(async () => {
    expect(postern.gateway.app.get(GatheringMemory, { strict: false })).toMatchObject({ used: 0 });
    await postern.stop();
    await provider.stop();
  });
  beforeEach(async () => {
    const log = postern.gateway.app.get(RequestLogService, { strict: false });
    await eventually(() => log.underWay === 0);
    seen = [];
    ended = [];
    provider.requests.length = 0;
  });

  const head = (want: Want[], ...more: string[]) => [
    `Authorization: Bearer ${key}`,
    `X-Want: ${want.join(' ')}`,
    'Content-Type: application/json',
    ...more,
  ];

  async function send(want: Want[], body: string | Buffer = '{"model":"m"}', ...more: string[]) {
    const client = await RawClient.connect(postern.port);
    client.send(request(`POST ${MAIN}`, head(want, ...more), body));
    const reply = await client.answer();
    client.destroy();
    return reply;
  }

  /** Rows are written in their order, so that the row of a later call shows that these have none. */
  const expectNoRows = async (ids: unknown[]) => {
    const probe = (await send([])).header('x-gateway-request-id')!;
    await postern.row(probe);
    const later = await postern.database.query<{ id: string }>(
      'SELECT id FROM request_log WHERE id = ANY ($1)',
      [[...ids, probe]],
    );
    expect(later).toEqual([{ id: probe }]);
  };

  const settled = async (): Promise<FinishedCall> => {
    const end = await eventually(() => ended[0]);
    return end as FinishedCall;
  };

  /** A change of the key that comes late asks too. */
  async function untilNotAsked(): Promise<void> {
    await eventually(async () => {
      seen = [];
      await send([]);
      return seen.length === 0;
    });
  }

  /** @returns whether the cached key and what policies depend on are still the same: if not, policies are asked again */
  function unchangedFromNow(key: string): () => boolean {
    const lookup = postern.gateway.app.get(KeyLookupService);
    const policies = postern.gateway.app.get(CallPolicies);
    const { version } = policies;
    const grant = lookup.findCached(key);
    return () => grant !== null && lookup.findCached(key) === grant && policies.version === version;
  }

  const asked = () => seen.filter((one) => one === 'asked');
  const reported = () => seen.filter((one) => one !== 'asked');

  it('calls the policies in their order, and settles a ticket with the row', async () => {
    const reply = await send(['report-order']);
    expect(reply.status).toBe(200);
    expect(reported()).toEqual(['first', 'second']);
    const { row } = await settled();
    expect(row).toMatchObject({
      id: reply.header('x-gateway-request-id'),
      model: 'm',
      prompt_tokens: 8,
      completion_tokens: 2,
      outcome: 'completed',
      status: 200,
      altered: null,
    });
    expect(ended).toHaveLength(1);
  });

  it('checks once for each version of a key whether a policy applies, and not at all later', async () => {
    await eventually(async () => {
      const isUnchanged = unchangedFromNow(key);
      await untilNotAsked();
      for (let i = 0; i < 3; i++) await send([]);
      return isUnchanged();
    });
    expect(seen).toEqual([]);
    const plain = { authorization: `Bearer ${postern.key}`, 'x-want': 'report-order' };
    await eventually(async () => {
      postern.gateway.app.get(CallPolicies).changed();
      const isUnchanged = unchangedFromNow(postern.key);
      seen = [];
      for (let i = 0; i < 3; i++)
        await (await fetch(postern.url + MAIN, { method: 'POST', headers: plain, body: '{}' })).text();
      return isUnchanged();
    });
    expect(asked()).toHaveLength(1);
    expect(reported()).toEqual(['second', 'second', 'second']);
  });

  it('checks again once a policy reports that what it depends on has changed', async () => {
    await eventually(async () => {
      await untilNotAsked();
      postern.gateway.app.get(CallPolicies).changed();
      const isUnchanged = unchangedFromNow(key);
      for (let i = 0; i < 2; i++) await send([]);
      return isUnchanged();
    });
    expect(seen).toEqual(['asked']);
  });

  it('gives a policy the facts of a call, and the body if it needs it', async () => {
    const body = '{"model":"m","max_tokens":7,"max_completion_tokens":9,"x":[1]}';
    await send(['report-facts', 'need-body'], body);
    const { row } = await settled();
    expect(reported()).toEqual([
      {
        key: row.key_id,
        method: 'POST',
        endpoint: MAIN,
        provider: 'default',
        model: 'm',
        requestBytes: body.length,
        maxOutputTokens: 9,
        parsedBody: { model: 'm', max_tokens: 7, max_completion_tokens: 9, x: [1] },
      },
      body,
    ]);
    seen = [];
    await send(['report-facts'], body);
    expect(reported()).toEqual([
      expect.objectContaining({ model: null, requestBytes: body.length, parsedBody: undefined }),
      null,
    ]);
  });

  it.each<[Want, number, string]>([
    ['reject', 418, 'test_teapot'],
    ['throw-http-exception', 403, 'forbidden'],
    ['throw-bug', 500, 'internal_error'],
  ])(
    'rejects a call without a row (%s), counts it, and abandons earlier tickets',
    async (want, status, code) => {
      const rejected: unknown[] = [];
      for (const wanted of [[want], [want, 'need-body' as const]]) {
        ended = [];
        const reply = await send(wanted);
        expect([reply.status, reply.header('x-gateway-error')]).toEqual([status, code]);
        expect(reply.body.toString()).not.toContain('secret detail');
        expect(ended).toEqual(['abandoned']);
        rejected.push(reply.header('x-gateway-request-id'));
      }
      expect(provider.requests).toHaveLength(0);
      await expectNoRows(rejected);
      expect((await Scrape.of(postern.url)).sum('postern_refusals_total', { code })).toBe(2);
    },
  );

  it('rejects a call whose body no policy needs before the body is sent', async () => {
    const client = await RawClient.connect(postern.port);
    client.send(request(`POST ${MAIN}`, head(['reject'], 'Content-Length: 5', 'Expect: 100-continue')));
    expect((await client.answer()).status).toBe(418);
    client.destroy();
  });

  describe.each([
    ['with a Content-Length', false],
    ['in chunks', true],
  ])('a gathered body %s', (_framing, chunked) => {
    it.each([0, 1, 262_144, 262_145, 5_000_000])(
      'is forwarded byte for byte in the same framing: %i bytes',
      async (size) => {
        const body = Buffer.alloc(size, 'abc');
        const client = await RawClient.connect(postern.port);
        client.send(
          request(
            `POST ${MAIN}`,
            head(['need-body'], chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${size}`),
          ),
        );
        if (!chunked) client.send(body);
        else {
          for (let at = 0; at < size; at += 100_000) client.send(chunk(body.subarray(at, at + 100_000)));
          client.send(LAST_CHUNK);
        }
        const reply = await client.answer();
        client.destroy();
        expect(reply.status).toBe(200);
        const [received] = provider.requests;
        expect((await received!.body).bytes.equals(body)).toBe(true);
        const framing = received!.headers.filter(([name]) =>
          /^(content-length|transfer-encoding)$/i.test(name),
        );
        expect(framing.map(([name, value]) => [name.toLowerCase(), value])).toEqual([
          chunked && size > 0 ? ['transfer-encoding', 'chunked'] : ['content-length', String(size)],
        ]);
        expect((await settled()).row.request_bytes).toBe(size);
      },
    );
  });

  it('forwards nothing while a policy cannot say whether it applies, and asks it again', async () => {
    await untilNotAsked();
    const policies = postern.gateway.app.get(CallPolicies);
    first.fails = true;
    policies.changed();
    try {
      for (let i = 0; i < 3; i++) expect((await send(['report-order'])).status).toBe(500);
      expect(seen).toEqual(['asked', 'asked', 'asked']);
    } finally {
      first.fails = false;
    }
    expect((await send(['report-order'])).status).toBe(200);
    expect(seen.slice(3)).toEqual(['asked', 'first', 'second']);
  });

  it('sends the same head to the provider as without a policy', async () => {
    const headOf = async (want: Want[]) => {
      provider.requests.length = 0;
      await send(want, '{"model":"m"}', 'x-CASE: 1', 'X-case: 2');
      return provider.requests[0]!.head.replace(/X-Want: .*\r\n/, '');
    };
    expect(await headOf(['need-body'])).toBe(await headOf([]));
  });

  it('sends 100 Continue once, after the head was checked', async () => {
    const client = await RawClient.connect(postern.port);
    client.send(request(`POST ${MAIN}`, head(['need-body'], 'Content-Length: 2', 'Expect: 100-continue')));
    expect((await client.head()).status).toBe(100);
    client.send('{}');
    expect((await client.answer()).status).toBe(200);
    client.send(request(`POST ${MAIN}`, head(['need-body']), '{}'));
    expect((await client.answer()).status).toBe(200);
    client.destroy();
    const large = await RawClient.connect(postern.port);
    large.send(
      request(`POST ${MAIN}`, head(['need-body'], 'Content-Length: 40000000', 'Expect: 100-continue')),
    );
    expect((await large.answer()).status).toBe(413);
    large.destroy();
  });

  it('rejects with 408 a client that stops sending, and with 400 a broken framing', async () => {
    const settings = postern.gateway.app.get<Settings>(SETTINGS);
    const limit = jest.replaceProperty(settings, 'clientIdleTimeoutMs', 300);
    const slow = await RawClient.connect(postern.port);
    slow.send(request(`POST ${MAIN}`, head(['need-body'], 'Content-Length: 10'), 'half'));
    const late = await slow.answer();
    limit.restore();
    expect([late.status, late.header('x-gateway-error')]).toEqual([408, 'request_timeout']);
    slow.destroy();
    const broken = await RawClient.connect(postern.port);
    broken.send(request(`POST ${MAIN}`, head(['need-body'], 'Transfer-Encoding: chunked')));
    broken.send('2\r\n{}\r\nzz\r\n');
    const reply = await broken.answer();
    expect([reply.status, reply.header('x-gateway-error')]).toEqual([400, 'invalid_request']);
    broken.destroy();
    expect(provider.requests).toHaveLength(0);
    expect(ended).toEqual([]);
  });

  it('forgets a call whose client leaves in the body', async () => {
    const client = await RawClient.connect(postern.port);
    client.send(request(`POST ${MAIN}`, head(['need-body'], 'Content-Length: 10'), 'half'));
    await eventually(async () => (await Scrape.of(postern.url)).sum('postern_open_calls') === 1);
    client.reset();
    await eventually(async () => (await Scrape.of(postern.url)).sum('postern_open_calls') === 0);
    await expectNoRows([]);
    expect(provider.requests).toHaveLength(1);
  });

  it('abandons the ticket of a call whose client leaves while a policy decides', async () => {
    const client = await RawClient.connect(postern.port);
    first.release = () => {};
    const { release } = first;
    client.send(request(`POST ${MAIN}`, head(['need-body', 'wait-for-release']), '{}'));
    await eventually(() => first.release !== release);
    client.reset();
    await eventually(async () => (await Scrape.of(postern.url)).sum('postern_open_requests') === 1);
    first.release();
    await eventually(() => ended.length === 1);
    expect(ended).toEqual(['abandoned']);
    expect(provider.requests).toHaveLength(0);
  });

  it('waits for a policy as long as it takes', async () => {
    const client = await RawClient.connect(postern.port);
    const { release } = first;
    client.send(request(`POST ${MAIN}`, head(['need-body', 'wait-for-release']), '{}'));
    await eventually(() => first.release !== release);
    await timePasses(6_000, 'longer than a client may be idle');
    first.release();
    expect((await client.answer()).status).toBe(200);
    client.destroy();
  });

  it('settles with null counts if the usage is not known', async () => {
    const { script } = provider;
    provider.script = async ({ body, socket }) => {
      await body;
      socket.write(STREAM_HEAD);
      socket.write(chunk('data: {}\n\n'));
    };
    const client = await RawClient.connect(postern.port);
    client.send(request(`POST ${MAIN}`, head(['need-body']), '{"model":"m"}'));
    await client.head();
    client.reset();
    const { row } = await settled();
    provider.script = script;
    expect(row).toMatchObject({ outcome: 'client_aborted', prompt_tokens: null, completion_tokens: null });
  });

  it('admits a repeated call as a request, and settles it as a replay', async () => {
    const ask = async (body: string) => {
      const client = await RawClient.connect(postern.port);
      const headers = head(['need-body'], 'Idempotency-Key: once').slice(1);
      client.send(request(`POST ${MAIN}`, [`Authorization: Bearer ${replaying}`, ...headers], body));
      const reply = await client.answer();
      client.destroy();
      return reply;
    };
    const reply = await ask('{"model":"m"}');
    const again = await ask('{"model":"m"}');
    expect(again.header('idempotent-replayed')).toBe('true');
    expect(again.body.equals(reply.body)).toBe(true);
    await eventually(() => ended.length === 2);
    const outcomes = (ended as FinishedCall[]).map(({ row }) => [row.outcome, row.request_bytes, row.model]);
    expect(outcomes).toEqual([
      ['completed', 13, 'm'],
      ['replayed', 13, 'm'],
    ]);
    expect(provider.requests).toHaveLength(1);
    ended = [];
    expect((await ask('{"model":"other"}')).status).toBe(422);
    expect(ended).toEqual(['abandoned']);
  });

  it('rejects with 503 while the gathered bodies of a team take what they may, and calls of other teams go on', async () => {
    const memory = postern.gateway.app.get(GatheringMemory, { strict: false });
    const [team] = await postern.database.query<{ id: string }>("SELECT id FROM team WHERE name = 'default'");
    const owners = Array.from({ length: 40 }, (_, i) => ({ keyId: `key ${i}`, teamId: team!.id }));
    const taken = owners.map((owner) => {
      let bytes = 0;
      for (let size = 16 * 1024 * 1024; size >= 8; size /= 2)
        while (memory.reserve(owner, size)) bytes += size;
      return bytes;
    });
    const reply = await send(['need-body'], '{"model":"a longer name"}');
    expect([reply.status, reply.header('x-gateway-error')]).toEqual([503, 'overloaded']);
    expect(reply.body.toString()).toContain('of this gateway key or its team');
    expect((await send([], '{"model":"a longer name"}')).status).toBe(200);
    await postern.admin('POST', '/teams', { name: 'other' });
    const other = await postern.createKey({ endpoints: 'all', team: 'other' });
    const client = await RawClient.connect(postern.port);
    const headers = [`Authorization: Bearer ${other}`, ...head(['need-body']).slice(1)];
    client.send(request(`POST ${MAIN}`, headers, Buffer.alloc(16 * 1024 * 1024, ' ')));
    expect((await client.answer()).status).toBe(200);
    client.destroy();
    owners.forEach((owner, i) => memory.free(owner, taken[i]!));
    await eventually(() => Reflect.get(memory, 'used') === 0);
  });

  it('rejects with 408 a body that arrives too slowly, however often a byte of it comes', async () => {
    const restore = setPatience(1 / 60, 'a gathered body');
    const slow = await RawClient.connect(postern.port);
    slow.send(request(`POST ${MAIN}`, head(['need-body'], 'Content-Length: 8192')));
    const bytes = setInterval(() => slow.send(' '), 100);
    const reply = await slow.answer();
    clearInterval(bytes);
    restore();
    slow.destroy();
    expect([reply.status, reply.header('x-gateway-error')]).toEqual([408, 'request_timeout']);
    expect(reply.body.toString()).toContain('at least 64 kbit/s');
    expect(provider.requests).toHaveLength(0);
  });

  it('rejects with 408 a body that pauses, sooner than CLIENT_IDLE_TIMEOUT_MS if that is long', async () => {
    const restore = setPatience(1 / 400, 'the next bytes of a gathered body');
    const slow = await RawClient.connect(postern.port);
    slow.send(request(`POST ${MAIN}`, head(['need-body'], 'Content-Length: 8192'), 'half'));
    expect((await slow.answer()).status).toBe(408);
    restore();
    slow.destroy();
  });
});
