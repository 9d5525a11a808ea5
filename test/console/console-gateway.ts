import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import { bareEnvironment, GatewayProcess, Process } from '../support/process.js';

const ROOT = resolve(__dirname, '../..');

/** The gateway as it ships, in a process of its own, with the console as it is built. */
export interface ConsoleGateway {
  url: string;
  database: TestDatabase;
  admin: <T = Record<string, unknown>>(method: string, path: string, body?: unknown) => Promise<T>;
  stop(): Promise<void>;
}

/** Builds the console if its sources changed. */
export async function buildConsole(): Promise<void> {
  const build = new Process(process.execPath, ['scripts/console.mjs'], { cwd: ROOT, env: bareEnvironment() });
  const { code } = await build.ended;
  if (code !== 0) throw new Error(`The console was not built:\n${build.stdout}${build.stderr}`);
}

/** @param seed fills the database before the gateway starts */
export async function startConsoleGateway(
  seed?: (database: TestDatabase) => Promise<unknown>,
): Promise<ConsoleGateway> {
  await buildConsole();
  const database = await createDatabase();
  await seed?.(database);
  const folder = mkdtempSync(join(tmpdir(), 'postern-console-'));
  const gateway = GatewayProcess.spawn(folder, {
    DATABASE_URL: database.url,
    DATA_DIR: join(folder, 'data'),
    ADMIN_TOKEN,
    LOG_LEVEL: 'warn',
  });
  const url = await gateway.ready();
  return {
    url,
    database,
    async admin<T>(method: string, path: string, body?: unknown) {
      const response = await fetch(`${url}${path}`, {
        method,
        headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
      return (text === '' ? undefined : JSON.parse(text)) as T;
    },
    async stop() {
      await gateway.stop();
      rmSync(folder, { recursive: true, force: true });
      await database.drop();
    },
  };
}
