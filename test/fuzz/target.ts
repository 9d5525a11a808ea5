import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createDatabase } from '../support/database.js';
import { ADMIN_TOKEN, PROVIDER_KEY } from '../support/gateway.js';
import { GatewayProcess } from '../support/process.js';
import { RawClient, type ReceivedResponse } from '../support/raw-client.js';
import { answer, RawProvider, type Script } from '../support/raw-provider.js';

/** The build as it ships, in a process of its own: what is under fire must be able to die alone. */
export interface FuzzTarget {
  process: GatewayProcess['process'];
  provider: RawProvider;
  port: number;
  /** A header line with a key that may use every endpoint. */
  auth: string;
  stop(): Promise<void>;
}

export async function startFuzzTarget(
  script: Script,
  variables: Record<string, string> = {},
): Promise<FuzzTarget> {
  // The gateway tests PROVIDER_KEY once after its start: a request that no client sent.
  let tested!: () => void;
  const keyTest = new Promise<void>((resolve) => (tested = resolve));
  const provider = await RawProvider.start(({ socket }) => {
    socket.write(answer('200 OK', []), tested);
  });
  const database = await createDatabase();
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-data-'));
  const gateway = GatewayProcess.spawn(dataDir, {
    DATABASE_URL: database.url,
    DATA_DIR: dataDir,
    PROVIDER_URL: provider.url,
    PROVIDER_KEY,
    ADMIN_TOKEN,
    LOG_LEVEL: 'error',
    ...variables,
  });
  const url = await gateway.ready();
  await keyTest;
  provider.script = script;
  provider.requests.length = 0;
  const made = await fetch(`${url}/admin/v1/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ team: 'default', name: 'fuzz', endpoints: 'all' }),
  });
  expect(made.status).toBe(201);
  const { key } = (await made.json()) as { key: string };
  return {
    process: gateway.process,
    provider,
    port: Number(new URL(url).port),
    auth: `Authorization: Bearer ${key}`,
    stop: async () => {
      await gateway.stop();
      await provider.stop();
      await database.drop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** The next final answer on a connection, interim ones skipped; null when the connection ended before it was whole. */
export async function finalAnswer(client: RawClient, method: string): Promise<ReceivedResponse | null> {
  try {
    for (;;) {
      const head = await client.head();
      if (/^HTTP\/1\.1 1\d\d /.test(head.head)) continue;
      const bodyless = method === 'HEAD' || head.status === 204 || head.status === 304;
      const body = bodyless ? Buffer.alloc(0) : (await client.reader.body(head.headers, true)).bytes;
      return { ...head, body };
    }
  } catch {
    return null;
  }
}

/** Bounded, so that a hang names its case instead of the test's time. */
export async function within<T>(promise: Promise<T>, what: () => string): Promise<T> {
  let timer!: NodeJS.Timeout;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end within 20 s: ${what()}`)), 20_000);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
