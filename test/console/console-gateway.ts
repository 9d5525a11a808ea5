import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CLIENT_SECRET, OpenIdProvider } from '../admin/openid-provider.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import { GatewayProcess } from '../support/process.js';
import { SECRETS } from './browser.js';
import { buildConsole } from './build-console.js';
import { type ModelProvider, startModelProvider } from './model-provider.js';
import type { Seeded } from './seed.js';
import { unusedPort } from '../support/unused-port.js';

/** The gateway as it ships, in a process of its own, with the console as it is built. */
export interface ConsoleGateway {
  url: string;
  database: TestDatabase;
  provider: ModelProvider;
  issuer: OpenIdProvider;
  /** What seedConsole() made, once it has. */
  seeded: Seeded;
  admin: <T = Record<string, unknown>>(method: string, path: string, body?: unknown) => Promise<T>;
  /** Stops the process where it is: it keeps its connections and answers none. */
  hang: () => void;
  /** Lets it go on. */
  resume: () => void;
  /** Kills the process alone, as if it had crashed. */
  kill: () => Promise<void>;
  stop(): Promise<void>;
}

/** Users of single sign-on. */
const USERS = {
  admin: { groups: ['llm-admins'], email: 'ada@example.com', email_verified: true },
  member: { groups: ['team-billing'], email: 'mia@example.com', email_verified: true },
  stranger: { groups: ['staff'] },
};
const MASTER_KEY = Buffer.alloc(32, 7).toString('base64');

/**
 * Starts one as in production, with a provider of models, single sign-on, and an empty database.
 *
 * @param more settings
 */
export async function startConsoleGateway(
  more: Record<string, string> = {},
): Promise<Omit<ConsoleGateway, 'seeded'>> {
  await buildConsole();
  // The OpenID provider says at length that it is one for tests.
  for (const level of ['warn', 'info'] as const) jest.spyOn(console, level).mockImplementation(() => {});
  const database = await createDatabase();
  const folder = mkdtempSync(join(tmpdir(), 'postern-console-'));
  const provider = await startModelProvider();
  const port = await unusedPort();
  const url = `http://127.0.0.1:${port}`;
  const issuer = await OpenIdProvider.start(url, USERS);
  const gateway = GatewayProcess.spawn(folder, {
    NODE_ENV: 'production',
    PORT: String(port),
    DATABASE_URL: database.url,
    DATA_DIR: join(folder, 'data'),
    ADMIN_TOKEN,
    MASTER_KEY,
    LOG_LEVEL: 'warn',
    PUBLIC_URL: url,
    OIDC_ISSUER: issuer.url,
    OIDC_CLIENT_ID: 'postern',
    OIDC_CLIENT_SECRET: CLIENT_SECRET,
    OIDC_ADMINS: 'llm-admins',
    OIDC_TEAM_PREFIX: 'team-',
    REPORT_TIMEZONE: 'Europe/Berlin',
    ...more,
  });
  for (const secret of [MASTER_KEY, CLIENT_SECRET]) SECRETS.add(secret);
  await gateway.ready();
  return {
    url,
    database,
    provider,
    issuer,
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
    hang: () => gateway.process.signal('SIGSTOP'),
    resume: () => gateway.process.signal('SIGCONT'),
    kill: () => gateway.process.kill(),
    async stop() {
      await Promise.all([gateway.stop(), provider.stop(), issuer.stop()]);
      rmSync(folder, { recursive: true, force: true });
      await database.drop();
    },
  };
}
