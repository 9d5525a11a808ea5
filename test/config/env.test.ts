import { resolve } from 'node:path';
import { EnvError } from '../../src/config/env-error.js';
import { loadEnv } from '../../src/config/env.js';

const key = Buffer.alloc(32, 7).toString('base64');

function faultsOf(source: NodeJS.ProcessEnv): readonly string[] {
  try {
    loadEnv(source);
  } catch (error) {
    if (error instanceof EnvError) return error.errors;
    throw error;
  }
  return [];
}

describe('loadEnv', () => {
  it('needs nothing: every variable has the default of the contract', () => {
    // A worker's test files share modules: another file's module may have declared settings of its own.
    const { moduleSettings, ...settings } = loadEnv({});
    expect(moduleSettings).not.toHaveProperty('PORT');
    expect(settings).toEqual({
      nodeEnv: 'development',
      host: '127.0.0.1',
      port: 8080,
      console: 'on',
      oidcScopes: 'openid profile email',
      oidcRoleClaim: 'groups',
      oidcAdmins: [],
      oidcViewers: [],
      databasePoolSize: 10,
      dataDir: resolve('data'),
      providerAuth: 'bearer',
      workers: 1,
      maxBodyBytes: 1_073_741_824,
      trustedProxies: [],
      clientHeadersTimeoutMs: 60_000,
      clientIdleTimeoutMs: 900_000,
      upstreamConnectTimeoutMs: 10_000,
      upstreamHeadersTimeoutMs: 900_000,
      upstreamIdleTimeoutMs: 900_000,
      identityTokenFiles: [],
      journalFsyncMs: 100,
      journalKeepMs: 600_000,
      journalKeepBytes: 1_073_741_824,
      requestLogRetentionDays: 90,
      jobs: 'on',
      signIn: 'off',
      refusals: 'on',
      refusalRetentionDays: 90,
      requestLogClient: 'full',
      requestLogUsers: 'plain',
      requestLogSubject: 'full',
      attribution: 'all',
      userHeaders: [],
      usageRetentionDays: 800,
      reportTimezone: 'UTC',
      keyCacheStaleMs: 600_000,
      budgetTimezone: 'UTC',
      limitsWithoutDatabase: 'reject',
      shutdownDelayMs: 0,
      shutdownGraceMs: 30_000,
      finishMaxSeconds: 600,
      finishMaxCalls: 256,
      migrate: true,
      modules: [],
      logLevel: 'info',
      otelServiceName: 'postern',
    });
  });

  it('reads every kind of value into its type and freezes the result', () => {
    const env = loadEnv({
      PORT: ' 0 ',
      DATA_DIR: 'relative/dir',
      MASTER_KEY: key,
      WORKERS: 'auto',
      TRUSTED_PROXIES: '10.0.0.0/8, 192.0.2.7,2001:db8::1 fd00::/8',
      MIGRATE: 'off',
      PROVIDER_URL: 'https://api.openai.com/',
      DATABASE_URL: 'postgres://u:p%23@db:5432/postern?sslmode=require',
    });
    expect(env.port).toBe(0);
    expect(env.dataDir).toBe(resolve('relative/dir'));
    expect(env.masterKey).toEqual(Buffer.alloc(32, 7));
    expect(env.workers).toBe('auto');
    expect(env.trustedProxies).toEqual(['10.0.0.0/8', '192.0.2.7/32', '2001:db8::1/128', 'fd00::/8']);
    expect(env.migrate).toBe(false);
    expect(env.providerUrl).toBe('https://api.openai.com');
    // What pg makes of it, without its warning.
    expect(env.databaseUrl).toBe('postgres://u:p%23@db:5432/postern?sslmode=verify-full');
    expect(Object.isFrozen(env) && Object.isFrozen(env.trustedProxies)).toBe(true);
  });

  it('takes no key of a provider to which callers send their own credential', () => {
    const settings = { PROVIDER_URL: 'https://api.anthropic.com', PROVIDER_AUTH: 'client' };
    expect(loadEnv(settings).providerAuth).toBe('client');
    expect(() => loadEnv({ ...settings, PROVIDER_KEY: 'sk-1' })).toThrow(/PROVIDER_KEY: must not be set/);
  });

  it('treats an empty value as an absent one', () => {
    expect(loadEnv({ PORT: '', PROVIDER_URL: ' ', MASTER_KEY: '', ADMIN_TOKEN_FILE: '' })).toEqual(
      loadEnv({}),
    );
  });

  it('keeps a PROVIDER_URL without PROVIDER_KEY: a local model server needs none', () => {
    expect(loadEnv({ PROVIDER_URL: 'http://127.0.0.1:8000' }).providerKey).toBeUndefined();
  });

  it('has one listener if ADMIN_PORT equals PORT, except for port 0', () => {
    expect(loadEnv({ PORT: '9000', ADMIN_PORT: '9000' }).adminPort).toBeUndefined();
    expect(loadEnv({ PORT: '9000', ADMIN_PORT: '9001' }).adminPort).toBe(9001);
    expect(loadEnv({ PORT: '0', ADMIN_PORT: '0' }).adminPort).toBe(0);
  });

  it('lists every error at once, by variable and remedy, and never prints a value', () => {
    const secret = 'hunter2-hunter2-hunter2 with spaces';
    const source = {
      NODE_ENV: 'production',
      PORT: '99999',
      ADMIN_TOKEN: secret,
      MASTER_KEY: `${secret}!`,
      DATABASE_URL: `mysql://root:${secret}@db/x`,
      PROVIDER_KEY: secret,
      UPSTREAM_PROXY_URL: `http://user:${secret}@proxy/path`,
      TRUSTED_PROXIES: '10.0.0.0/33',
      LOG_LEVEL: 'loud',
      UPSTREAM_IDLE_TIMEOUT_MS: '9999999999',
    };
    const faults = faultsOf(source);
    expect(faults.map((fault) => fault.split(':')[0]).sort()).toEqual(
      [...Object.keys(source).filter((name) => name !== 'NODE_ENV'), 'PROVIDER_URL'].sort(),
    );
    const message = new EnvError(faults).message;
    expect(message.split('\n')).toHaveLength(faults.length + 1);
    for (const value of [secret, 'hunter2', '99999', 'loud', 'mysql', '10.0.0.0/33', '9999999999']) {
      expect(message).not.toContain(value);
    }
  });

  it('requires in production what development generates', () => {
    expect(faultsOf({ NODE_ENV: 'production' })).toEqual([
      expect.stringMatching(/^DATABASE_URL: must be set/),
      expect.stringMatching(/^ADMIN_TOKEN: must be set/),
      expect.stringMatching(/^MASTER_KEY: must be set/),
    ]);
  });

  it('requires for sign-ins from clients what they need, by name', () => {
    expect(faultsOf({ SIGN_IN: 'on' })).toEqual([
      'OIDC_ISSUER: must be set when SIGN_IN=on',
      'PUBLIC_URL: must be set when SIGN_IN=on',
      'OIDC_TEAM_PREFIX: must be set when SIGN_IN=on',
    ]);
  });

  it.each([
    ['HOST', ['http://x', '[::1]', 'a b', '127.0.0.1:80']],
    ['PORT', ['-1', '1.5', '0x50', '65536', 'http']],
    ['DATABASE_POOL_SIZE', ['0', '1001']],
    [
      'DATABASE_URL',
      [
        'db',
        'postgres://h',
        'postgres://h/',
        'http://h/db',
        'postgres://u:p#w@h/db',
        'postgres://u:%zz@h/db',
      ],
    ],
    ['PROVIDER_URL', ['api.openai.com', 'https://api.openai.com/v1', 'http://169.254.169.254']],
    ['PROVIDER_AUTH', ['Bearer', 'basic']],
    ['ADMIN_TOKEN', ['fifteen-letters', 'sixteen letters!']],
    ['MASTER_KEY', ['short', Buffer.alloc(31).toString('base64'), Buffer.alloc(33).toString('base64')]],
    ['MASTER_KEY_PREVIOUS', ['0'.repeat(64)]],
    ['WORKERS', ['0', 'all', '257']],
    ['MAX_BODY_BYTES', ['0', '1e9', '1gb']],
    ['TRUSTED_PROXIES', ['10.0.0/8', 'proxy.local', 'fe80::1%eth0', '::/129', '10.0.0.0/']],
    ['UPSTREAM_PROXY_URL', ['socks5://p:1', 'proxy:3128', 'http://p/x']],
    ['MIGRATE', ['true', 'ON', '0']],
    ['NODE_ENV', ['staging']],
    ['REQUEST_LOG_CLIENT', ['no']],
  ])('%s rejects %j', (name, values) => {
    for (const value of values) {
      expect(faultsOf({ [name]: value })).toEqual([expect.stringMatching(new RegExp(`^${name}: `))]);
    }
  });
});
