import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EnvError } from '../../src/config/env-error.js';
import { z } from 'zod';
import { loadEnv } from '../../src/config/env.js';
import { misspeltSettings } from '../../src/config/misspelt-settings.js';
import { DeclaredSettings } from '../../src/config/module-settings.js';

describe('where the environment comes from', () => {
  let folder: string;
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'postern-env-'))));
  afterEach(() => rmSync(folder, { recursive: true }));

  const file = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const fault = (source: NodeJS.ProcessEnv, dotenv: string | null = null): string => {
    try {
      loadEnv(source, dotenv);
    } catch (error) {
      if (error instanceof EnvError) return error.message;
      throw error;
    }
    throw new Error('no fault');
  };

  it('reads .env, but the real environment wins and an empty one does not', () => {
    const dotenv = file(
      '.env',
      '# comment\nPORT=7001\nexport HOST=0.0.0.0\nLOG_LEVEL="debug"\nADMIN_PORT=7002 # admin\n',
    );
    const env = loadEnv({ PORT: '7003', HOST: '' }, dotenv);
    expect([env.port, env.host, env.logLevel, env.adminPort]).toEqual([7003, '0.0.0.0', 'debug', 7002]);
  });

  it('does without .env, but says so when it is there and cannot be read', () => {
    expect(loadEnv({}, join(folder, '.env')).port).toBe(8080);
    expect(fault({}, folder)).toMatch(/\.env: cannot be read \(EISDIR\)/);
  });

  it('reads a source that is handed in as it stands, without the .env of the working folder', () => {
    file('.env', 'PORT=7001\n');
    const before = process.cwd();
    process.chdir(folder);
    try {
      expect(loadEnv({}).port).toBe(8080);
      expect(loadEnv().port).toBe(7001);
    } finally {
      process.chdir(before);
    }
  });

  it('takes each secret from NAME_FILE and trims exactly one trailing newline', () => {
    const env = loadEnv({
      PROVIDER_URL: 'https://api.openai.com',
      PROVIDER_KEY_FILE: file('provider', 'sk-provider\n'),
      ADMIN_TOKEN_FILE: file('admin', 'abcdefgh-12345678\r\n'),
      MASTER_KEY_FILE: file('master', Buffer.alloc(32, 1).toString('base64')),
      MASTER_KEY_PREVIOUS_FILE: file('previous', Buffer.alloc(32, 2).toString('base64')),
      DATABASE_URL_FILE: file('database', 'postgres://db/postern\n'),
      UPSTREAM_PROXY_URL_FILE: file('proxy', 'http://u:p@proxy:3128\n'),
    });
    expect(env.providerKey).toBe('sk-provider');
    expect(env.adminToken).toBe('abcdefgh-12345678');
    expect(env.masterKey?.[0]).toBe(1);
    expect(env.masterKeyPrevious?.[0]).toBe(2);
    expect(env.databaseUrl).toBe('postgres://db/postern');
    expect(env.upstreamProxyUrl).toBe('http://u:p@proxy:3128');
  });

  it('counts a file as given in production', () => {
    const env = loadEnv({
      NODE_ENV: 'production',
      DATABASE_URL_FILE: file('database', 'postgresql://db/postern'),
      ADMIN_TOKEN_FILE: file('admin', 'abcdefgh-12345678'),
      MASTER_KEY_FILE: file('master', Buffer.alloc(32, 1).toString('base64')),
    });
    expect(env.nodeEnv).toBe('production');
  });

  it('rejects a secret given twice, an unreadable file and an empty one, each once and without its path', () => {
    const source = {
      NODE_ENV: 'production',
      DATABASE_URL_FILE: join(folder, 'nowhere'),
      ADMIN_TOKEN: 'abcdefgh-12345678',
      ADMIN_TOKEN_FILE: file('admin', 'abcdefgh-12345678'),
      MASTER_KEY_FILE: file('master', '\n'),
    };
    const message = fault(source);
    expect(message.split('\n')).toHaveLength(4);
    expect(message).toMatch(/ADMIN_TOKEN: give either ADMIN_TOKEN or ADMIN_TOKEN_FILE, not both/);
    expect(message).toMatch(/DATABASE_URL_FILE: the file cannot be read \(ENOENT\)/);
    expect(message).toMatch(/MASTER_KEY_FILE: the file is empty/);
    expect(message).not.toContain(folder);
  });

  it('finds names that are almost settings, and in .env those that are none, but for those that modules declare', () => {
    const declared = new DeclaredSettings(z.object({ QUOTA_TOKENS: z.string() }), {
      secrets: ['QUOTA_TOKENS'],
    });
    const dotenv = file(
      '.env',
      'LOGLEVEL=debug\nPORT=7001\nQUOTA_TOKENS=1\nQUOTA_TOKEN_FILE=x\nPOSTGRES_PASSWORD=p\nSOMETHING=s3cret\n',
    );
    const source = {
      PROVIDER_ULR: 'https://api.openai.com',
      OIDC_ISUER: 'x',
      PROVIDER_KEY_FILE: '/x',
      HOME: '/root',
      PATH: '/bin',
      HOSTNAME: 'x',
      ANOTHER: 'x',
    };
    expect(misspeltSettings([declared], source, dotenv)).toEqual([
      'LOGLEVEL in .env is not a setting; did you mean LOG_LEVEL?',
      'QUOTA_TOKEN_FILE in .env is not a setting; did you mean QUOTA_TOKENS_FILE?',
      'SOMETHING in .env is not a setting; see docs/reference/settings.md',
      'PROVIDER_ULR is not a setting; did you mean PROVIDER_URL?',
      'OIDC_ISUER is not a setting; did you mean OIDC_ISSUER?',
    ]);
  });
});
