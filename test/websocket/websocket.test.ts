import { UpstreamPools } from '../../src/proxy/upstream/upstream-pools.js';
import { startTestGateway, PROVIDER_KEY, type TestGateway } from '../support/gateway.js';
import { eventually, soon } from '../support/eventually.js';
import { responseCompleted, responseDone, WsClient, WsProvider } from './ws-provider.js';

const REALTIME = '/v1/realtime?model=gpt-realtime';

let provider: WsProvider;
let gateway: TestGateway;
let key: string;
beforeAll(async () => {
  provider = await WsProvider.start();
  gateway = await startTestGateway({ PROVIDER_URL: provider.url });
  key = await gateway.createKey({ websockets: true });
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});
beforeEach(() => {
  provider.script = (socket) => socket.on('message', (data: Buffer) => socket.send(data.toString()));
});

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const connect = (path = REALTIME, headers: Record<string, string> = bearer(key), options = {}) =>
  WsClient.connect(gateway.url, path, headers, options);

async function open(...args: Parameters<typeof connect>): Promise<WsClient> {
  const client = connect(...args);
  await client.opened;
  return client;
}

/** What a plain HTTP response to the handshake says. */
function rejectedWith(client: WsClient): Promise<[status: number, code: unknown, body: string]> {
  return new Promise((resolve, reject) => {
    client.socket.once('open', () => reject(new Error('it was opened')));
    client.socket.once('unexpected-response', (_, response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => (body += chunk.toString()));
      response.on('end', () => resolve([response.statusCode!, response.headers['x-gateway-error'], body]));
    });
  });
}

describe('a WebSocket', () => {
  it.each([true, false])(
    'carries messages both ways, and leaves one row (compressed: %s)',
    async (compressed) => {
      provider.script = (socket) => {
        socket.on('message', (data: Buffer) => {
          socket.send(`echo ${data.toString()}`);
          socket.send(responseDone(10, 5));
          socket.send(Buffer.from([1, 2, 3]));
        });
      };
      const client = await open(
        REALTIME,
        { ...bearer(key), 'user-agent': 'agent/1' },
        { perMessageDeflate: compressed },
      );
      expect(client.socket.extensions).toBe(compressed ? 'permessage-deflate' : '');
      client.socket.send('one');
      client.socket.send('two');
      await eventually(() => client.messages.length === 6);
      expect(client.messages.filter((text) => text.startsWith('echo'))).toEqual(['echo one', 'echo two']);
      client.socket.close(1000);
      expect(await client.closed).toEqual({ code: 1000, reason: '' });
      const row = await eventually(() => gateway.row(client.requestId));
      expect(row).toMatchObject({
        status: 101,
        outcome: 'completed',
        error_code: null,
        method: 'GET',
        path: '/v1/realtime',
        model: 'gpt-realtime',
        prompt_tokens: 20,
        completion_tokens: 10,
        cached_tokens: 4,
        extra_usage: { input_audio_tokens: 6, output_audio_tokens: 8 },
        user_agent: 'agent/1',
      });
      expect(Number(row.request_bytes)).toBeGreaterThan(2 * 3);
      expect(Number(row.response_bytes)).toBeGreaterThan(compressed ? 100 : 2 * responseDone(10, 5).length);
      expect(row.duration_ms).toBeGreaterThan(0);
      const rows = await gateway.database.query('SELECT FROM request_log WHERE id = $1', [client.requestId]);
      expect(rows).toHaveLength(1);
    },
  );

  it('counts the responses of the Responses API, large ones and those of one message after another', async () => {
    provider.script = (socket) => {
      socket.send(JSON.stringify({ type: 'response.created', response: { model: 'gpt-5.6', usage: null } }));
      socket.send(JSON.stringify({ type: 'response.output_text.delta', delta: '"response.completed"' }));
      for (const text of ['', 'x'.repeat(300_000), 'y'.repeat(2_000_000)])
        socket.send(responseCompleted(100, 10, 'gpt-5.6', text));
      socket.close(1000);
    };
    const client = await open('/v1/responses');
    await client.closed;
    expect(client.messages).toHaveLength(5);
    const row = await eventually(() => gateway.row(client.requestId));
    expect(row).toMatchObject({
      model: 'gpt-5.6',
      prompt_tokens: 300,
      completion_tokens: 30,
      reasoning_tokens: 3,
    });
  });

  it('has the last error that its provider reported', async () => {
    const error = (code: string) => ({ type: 'invalid_request_error', code, message: 'A sentence.' });
    provider.script = (socket) => {
      socket.send(JSON.stringify({ type: 'error', event_id: 'e', error: error('first') }));
      socket.send(JSON.stringify({ type: 'response.failed', response: { id: 'r', error: error('second') } }));
      socket.send(JSON.stringify({ type: 'response.output_text.delta', delta: '"error":{"code":"third"}' }));
      socket.close(1000);
    };
    const client = await open('/v1/responses');
    await client.closed;
    const row = await eventually(() => gateway.row(client.requestId));
    expect(row).toMatchObject({
      outcome: 'completed',
      provider_error_type: 'invalid_request_error',
      provider_error_code: 'second',
    });
  });

  it('names no model if its responses name several', async () => {
    provider.script = (socket) => {
      for (const model of ['gpt-5.6', 'gpt-5.6-mini']) socket.send(responseCompleted(1, 1, model));
      socket.close(1000);
    };
    const client = await open('/v1/responses');
    await client.closed;
    expect(await eventually(() => gateway.row(client.requestId))).toMatchObject({
      model: null,
      prompt_tokens: 2,
    });
  });

  it('forwards the handshake with the credential of the provider', async () => {
    const client = await open(
      '/p/default/v1/realtime?model=m&x=%2F',
      {
        ...bearer(key),
        'OpenAI-Beta': 'realtime=v1',
        cookie: 'a=b',
        'x-copy': key,
      },
      { protocols: ['realtime', 'other'] },
    );
    expect(client.socket.protocol).toBe('realtime');
    const { url, headers, rawHeaders } = provider.handshakes.at(-1)!;
    expect(url).toBe('/v1/realtime?model=m&x=%2F');
    expect(rawHeaders.join()).not.toContain(key);
    expect(headers).toMatchObject({
      authorization: `Bearer ${PROVIDER_KEY}`,
      'openai-beta': 'realtime=v1',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-protocol': 'realtime,other',
    });
    expect([headers.cookie, headers['x-copy']]).toEqual([undefined, undefined]);
    client.socket.close();
    await client.closed;
  });

  it('takes the key of a browser from its subprotocols, and does not forward it', async () => {
    const protocols = ['realtime', `openai-insecure-api-key.${key}`, 'openai-beta.realtime-v1'];
    const client = await open(REALTIME, {}, { protocols });
    const { headers, rawHeaders } = provider.handshakes.at(-1)!;
    expect(headers['sec-websocket-protocol']).toBe('realtime,openai-beta.realtime-v1');
    expect([headers.authorization, rawHeaders.join().includes('ptn_')]).toEqual([
      `Bearer ${PROVIDER_KEY}`,
      false,
    ]);
    client.socket.close();
    await client.closed;
    const wrong = connect(REALTIME, {}, { protocols: ['realtime', `openai-insecure-api-key.${key}0`] });
    expect((await rejectedWith(wrong)).slice(0, 2)).toEqual([401, 'invalid_api_key']);
  });

  it.each([
    ['/v1/chat/completions', 426, 'upgrade_required'],
    ['/v1/realtime/calls', 426, 'upgrade_required'],
    ['/v1/files', 426, 'upgrade_required'],
    ['/v1/responses?_method=DELETE', 403, 'endpoint_not_allowed'],
  ])('is opened on few endpoints, not on %s', async (path, status, code) => {
    expect((await rejectedWith(connect(path))).slice(0, 2)).toEqual([status, code]);
  });

  it('is opened for keys that may, and no plain GET with it', async () => {
    const other = await gateway.createKey({ endpoints: 'all' });
    expect((await rejectedWith(connect(REALTIME, bearer(other)))).slice(0, 2)).toEqual([
      426,
      'upgrade_required',
    ]);
    const plain = await fetch(`${gateway.url}/v1/responses`, { headers: bearer(key) });
    expect([plain.status, plain.headers.get('x-gateway-error')]).toEqual([403, 'endpoint_not_allowed']);
  });

  it.each([
    ['/v1/realtime?model=gpt-realtime', null],
    ['/v1/realtime?model=gpt-5', [403, 'model_not_allowed']],
    ['/v1/realtime', [400, 'model_not_determined']],
    ['/v1/realtime?model=gpt-realtime&model=gpt-5', [400, 'model_not_determined']],
    // These choose another kind of session, another session, or what some parser reads as another model.
    ['/v1/realtime?intent=transcription&model=gpt-realtime', [400, 'model_not_determined']],
    ['/v1/realtime?model=gpt-realtime&call_id=rtc_1', [400, 'model_not_determined']],
    ['/v1/realtime?model[]=gpt-realtime', [400, 'model_not_determined']],
    ['/v1/realtime?%6dodel=gpt-realtime', [400, 'model_not_determined']],
    ['/v1/realtime?model=gpt-realtime;deployment=gpt-5', [400, 'model_not_determined']],
    // The client names models in messages there, where nothing checks them.
    ['/v1/responses?model=gpt-realtime', [426, 'upgrade_required']],
  ])('of a key with a list of models: %s', async (path, rejection) => {
    const limited = await gateway.createKey({ websockets: true, models: ['gpt-realtime*'] });
    const client = connect(path, bearer(limited));
    if (rejection !== null) expect((await rejectedWith(client)).slice(0, 2)).toEqual(rejection);
    else await client.opened;
    client.socket.terminate();
  });

  it("gets the provider's response as it is if that opens none", async () => {
    await gateway.storeProviders('away');
    expect((await rejectedWith(connect('/p/away/v1/responses'))).slice(0, 2)).toEqual([
      502,
      'upstream_unreachable',
    ]);
    const rejected = connect('/v1/responses', { ...bearer(key), 'x-reject': '1' });
    const [status, code, body] = await rejectedWith(rejected);
    expect([status, code, body]).toEqual([401, undefined, 'not by us']);
  });

  it('ends with its client', async () => {
    const client = await open();
    client.socket.terminate();
    await eventually(() => provider.sockets.at(-1)!.readyState === provider.sockets.at(-1)!.CLOSED);
    expect(await eventually(() => gateway.row(client.requestId))).toMatchObject({
      status: 101,
      outcome: 'client_aborted',
      prompt_tokens: null,
    });
  });

  it('counts as a connection to the provider for as long as it is open', async () => {
    const pools = gateway.gateway.app.get(UpstreamPools);
    const taken = () => (pools as unknown as { limit: { calls: number } }).limit.calls;
    await eventually(() => taken() === 0);
    const clients = [await open(), await open()];
    await eventually(() => taken() === 2);
    clients[0]!.socket.close();
    provider.sockets.at(-1)!.terminate();
    await Promise.all(clients.map(({ closed }) => closed));
    await eventually(() => taken() === 0);
    expect(pools.counts).toMatchObject({ connected: 0, waiting: 0 });
  });

  it('is complete if its client leaves between responses', async () => {
    const created = JSON.stringify({ type: 'response.created', response: { model: 'm', usage: null } });
    for (const outcome of ['completed', 'client_aborted']) {
      provider.script = (socket) => {
        socket.send(created);
        socket.send(responseCompleted(5, 1, 'm'));
        if (outcome === 'client_aborted') socket.send(created);
        socket.send('last');
      };
      const client = await open('/v1/responses');
      await eventually(() => client.messages.includes('last'));
      client.socket.terminate();
      expect(await eventually(() => gateway.row(client.requestId))).toMatchObject({
        outcome,
        prompt_tokens: 5,
      });
    }
  });

  it('ends with its provider', async () => {
    provider.script = (socket) => socket.send(responseDone(7, 1), () => socket.terminate());
    const client = await open();
    expect((await client.closed).code).toBe(1006);
    expect(await eventually(() => gateway.row(client.requestId))).toMatchObject({
      status: 101,
      outcome: 'truncated',
      error_code: 'upstream_invalid_response',
      prompt_tokens: 7,
    });
  });

  it('closes with 1008 on every change that takes the key its permission', async () => {
    for (const [path, change] of [
      ['revoke', {}],
      ['', { disabled: true }],
      ['', { websockets: false }],
    ] as const) {
      const made = await gateway.admin<{ id: string; key: string }>('POST', '/keys', {
        team: 'default',
        name: `ws-${Math.random()}`,
        websockets: true,
      });
      const client = await open(REALTIME, bearer(made.key));
      await gateway.admin(path === '' ? 'PATCH' : 'POST', `/keys/${made.id}${path && `/${path}`}`, change);
      let closing: unknown;
      void client.closed.then((how) => (closing = how));
      await soon(() => Promise.resolve(closing !== undefined));
      expect(closing).toMatchObject({ code: 1008 });
      expect(await eventually(() => gateway.row(client.requestId))).toMatchObject({
        outcome: 'interrupted',
        error_code: 'invalid_api_key',
      });
      await eventually(() => provider.sockets.at(-1)!.readyState === provider.sockets.at(-1)!.CLOSED);
    }
  });

  it('of another key goes on meanwhile', async () => {
    const client = await open();
    const made = await gateway.admin<{ id: string }>('POST', '/keys', { team: 'default', name: 'bystander' });
    await gateway.admin('POST', `/keys/${made.id}/revoke`);
    client.socket.send('still here');
    await eventually(() => client.messages.includes('still here'));
    client.socket.close();
    await client.closed;
  });
});
