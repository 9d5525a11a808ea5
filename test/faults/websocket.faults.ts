import { createDatabase } from '../support/database.js';
import { eventually, timePasses } from '../support/eventually.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import { drained } from '../support/kill-rounds.js';
import { Workplace } from '../support/workplace.js';
import { responseDone, WsClient, WsProvider } from '../websocket/ws-provider.js';

/** For a soak of ten minutes: POSTERN_SOAK_SECONDS=600. */
const SECONDS = Number(process.env.POSTERN_SOAK_SECONDS ?? 60);
const CONNECTIONS = 200;
const KEYS = 20;
const REVOCATIONS = 8;
const GRACE_MS = 10_000;
/** The gateway promises one second; a busy machine delays the clients of this test as well. */
const CLOSED_WITHIN_MS = 3_000;
const MIB = 1024 * 1024;
const DELTA = JSON.stringify({ type: 'response.output_audio.delta', delta: 'x'.repeat(4_000) });
const DONE = { input: 7, output: 3 };

/** What a client knows about one WebSocket. */
interface Connection {
  client: WsClient;
  key: string;
  /** Responses that it has received to their end. */
  responses: number;
  end: 'client' | 'provider' | 'revoked' | 'shutdown' | null;
  closedAt: number;
}

interface Row {
  id: string;
  status: number;
  outcome: string;
  prompt_tokens: number | null;
  completion_tokens: number | null;
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!;

it(
  `keeps ${CONNECTIONS} WebSockets open for ${SECONDS} s in constant memory, closes those of revoked keys, and stops clean`,
  async () => {
    const database = await createDatabase();
    const workplace = await Workplace.make();
    const provider = await WsProvider.start();
    provider.script = (socket) =>
      socket.on('message', (data: Buffer) => {
        for (let i = 0; i < 5; i++) socket.send(DELTA);
        socket.send(responseDone(DONE.input, DONE.output));
        // A provider that goes away after a response, without a close frame.
        if (data.includes('leave')) setTimeout(() => socket.terminate(), 20);
      });
    const gateway = workplace.gateway({
      DATABASE_URL: database.url,
      PROVIDER_URL: provider.url,
      ADMIN_TOKEN,
      SHUTDOWN_GRACE_MS: String(GRACE_MS),
    });
    const url = await gateway.ready();
    const admin = async <T>(method: string, path: string, body?: object): Promise<T> => {
      const response = await fetch(`${url}/admin/v1${path}`, {
        method,
        headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      expect(response.ok).toBe(true);
      return (await response.json()) as T;
    };
    let names = 0;
    const issue = () =>
      admin<{ id: string; key: string }>('POST', '/keys', {
        team: 'default',
        name: `soak-${++names}`,
        websockets: true,
      });
    const keys = await Promise.all(Array.from({ length: KEYS }, issue));

    const all: Connection[] = [];
    let running = true;
    const use = async (slot: number): Promise<void> => {
      while (running) {
        const { key } = keys[slot % KEYS]!;
        const client = WsClient.connect(
          url,
          '/v1/realtime?model=gpt-realtime',
          { authorization: `Bearer ${key}` },
          { perMessageDeflate: slot % 2 === 0 },
        );
        // Revoked between the choice of the key and the handshake.
        if (
          !(await client.opened.then(
            () => true,
            () => false,
          ))
        )
          continue;
        const connection: Connection = { client, key, responses: 0, end: null, closedAt: 0 };
        all.push(connection);
        let received = () => {};
        client.socket.on('message', (data: Buffer) => {
          client.messages.length = 0;
          if (!data.includes('response.done')) return;
          connection.responses++;
          received();
        });
        void client.closed.then(() => {
          connection.closedAt = performance.now();
          received();
        });
        while (running && client.socket.readyState === client.socket.OPEN) {
          const dice = Math.random();
          if (dice < 0.01) {
            connection.end = 'client';
            client.socket.close(1000);
            break;
          }
          // Also of one whose key is being revoked: who is first closes it.
          if (dice < 0.015) connection.end = 'provider';
          const response = new Promise<void>((resolve) => (received = resolve));
          client.socket.send(
            dice < 0.015 && dice >= 0.01 ? '{"type":"leave"}' : '{"type":"response.create"}',
          );
          await response;
          await timePasses(500 + Math.random() * 1_000, 'the pace of the client');
        }
        await client.closed;
      }
    };
    const users = Array.from({ length: CONNECTIONS }, async (_, slot) => {
      await timePasses(slot * 10, 'the connections are opened one after the other');
      await use(slot);
    });

    const residents: number[] = [];
    const revokedIn: number[] = [];
    await eventually(() => all.length >= CONNECTIONS);
    const begun = performance.now();
    let nextRevocation = 1;
    while (performance.now() - begun < SECONDS * 1_000) {
      await timePasses(1_000, 'the soak lasts a fixed time, and is measured each second');
      const metrics = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
      residents.push(Number(/^process_resident_memory_bytes (\S+)$/m.exec(await metrics.text())![1]));
      if (performance.now() - begun < (nextRevocation * SECONDS * 1_000) / (REVOCATIONS + 1)) continue;
      const at = nextRevocation++;
      const revoked = keys[at]!;
      keys[at] = await issue();
      const open = all.filter(({ key, closedAt }) => key === revoked.key && closedAt === 0);
      for (const connection of open) connection.end ??= 'revoked';
      const revokedAt = performance.now();
      await admin('POST', `/keys/${revoked.id}/revoke`);
      await eventually(() => open.every(({ closedAt }) => closedAt !== 0), CLOSED_WITHIN_MS);
      revokedIn.push(...open.map(({ closedAt }) => closedAt - revokedAt));
      const codes = await Promise.all(
        open.filter(({ end }) => end === 'revoked').map(({ client }) => client.closed),
      );
      expect(new Set(codes.map(({ code }) => code))).toEqual(new Set([1008]));
    }

    // Calls go on until the gateway closes them.
    const last = all.filter(({ closedAt, end }) => closedAt === 0 && end === null);
    for (const connection of last) connection.end = 'shutdown';
    const stoppedAt = performance.now();
    const stopping = gateway.stop();
    running = false;
    const closings = await Promise.all(last.map(({ client }) => client.closed));
    const closedIn = Math.max(...last.map(({ closedAt }) => closedAt - stoppedAt));
    expect(await stopping).toEqual({ code: 0, signal: null });
    const stoppedIn = performance.now() - stoppedAt;
    await Promise.all(users);
    expect(last.length).toBeGreaterThan(CONNECTIONS / 2);
    expect(new Set(closings.map(({ code }) => code))).toEqual(new Set([1001]));
    expect(closedIn).toBeLessThan(GRACE_MS);

    // What the stopped gateway could not write any more is in its journal.
    const next = workplace.gateway({ DATABASE_URL: database.url, ADMIN_TOKEN });
    await next.ready();
    await drained(workplace);
    await next.stop();
    const rows = await database.query<Row>(
      'SELECT id, status, outcome, prompt_tokens, completion_tokens FROM request_log',
    );
    expect(rows.length).toBe(all.length);
    expect(provider.handshakes.length).toBe(all.length);
    const byId = new Map(rows.map((row) => [row.id, row]));
    const wrong = all.filter(({ client, responses, end }) => {
      const row = byId.get(client.requestId);
      const tokens = responses === 0 ? [null, null] : [responses * DONE.input, responses * DONE.output];
      const outcome = end === 'client' ? 'completed' : end === 'provider' ? 'truncated' : 'interrupted';
      return (
        row === undefined ||
        row.status !== 101 ||
        row.prompt_tokens !== tokens[0] ||
        row.completion_tokens !== tokens[1] ||
        (row.outcome !== outcome && row.outcome !== 'interrupted')
      );
    });
    expect(wrong.map(({ client, responses, end }) => [responses, end, byId.get(client.requestId)])).toEqual(
      [],
    );

    const fifth = Math.floor(residents.length / 5);
    const early = median(residents.slice(fifth, 2 * fifth));
    const late = median(residents.slice(-fifth));
    const responses = all.reduce((sum, connection) => sum + connection.responses, 0);
    process.stdout.write(
      `${all.length} WebSockets in ${SECONDS} s, ${CONNECTIONS} at a time, ${responses} responses; resident ` +
        `${Math.round(early / MIB)} MiB early, ${Math.round(late / MIB)} MiB late; ${revokedIn.length} of revoked keys closed in ` +
        `${Math.round(median(revokedIn))} ms (median), ${Math.round(Math.max(...revokedIn))} ms (most); shutdown: all ` +
        `closed with 1001 after ${Math.round(closedIn)} ms, exit after ${Math.round(stoppedIn)} ms; ${rows.length} rows\n`,
    );
    expect(late - early).toBeLessThan(32 * MIB);
    await provider.stop();
    await workplace.remove();
    await database.drop();
  },
  (SECONDS + 240) * 1_000,
);
