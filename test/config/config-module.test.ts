import { Injectable, Module } from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { Test } from '@nestjs/testing';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { ConfigModule, InjectSettings } from '../../src/config/config.module.js';
import { EnvError } from '../../src/config/env-error.js';
import { loadEnv } from '../../src/config/env.js';
import type { ConfigValues, Settings } from '../../src/config/settings.js';
import { DeclaredSettings } from '../../src/config/module-settings.js';
import { removeFolder, temporaryFolder } from './temporary-folder.js';

@Injectable()
class Reader {
  constructor(
    @InjectSettings() readonly settings: Settings,
    readonly config: ConfigService<ConfigValues, true>,
  ) {}
}

@Module({ providers: [Reader], exports: [Reader] })
class Room {}

const quotaSettings = z.object({
  QUOTA_TOKENS_PER_DAY: z.coerce.number('must be a number').int().min(1).default(1_000_000),
  QUOTA_SIGNING_SECRET: z.string().min(8, 'must have 8 characters or more').optional(),
});

@Injectable()
class QuotaService {
  constructor(readonly config: ConfigService) {}
}

@Module({
  imports: [ConfigModule.forFeature(quotaSettings, { secrets: ['QUOTA_SIGNING_SECRET'] })],
  providers: [QuotaService],
})
class QuotaModule {}

const declared = [new DeclaredSettings(quotaSettings, { secrets: ['QUOTA_SIGNING_SECRET'] })];

function settingsOf(source: NodeJS.ProcessEnv): Settings {
  return {
    ...loadEnv(source, null, { declared }),
    databaseUrl: 'postgres://127.0.0.1/postern',
    workers: 1,
    worker: 1,
  };
}

function compile(settings: Settings, ...modules: (typeof Room)[]) {
  return Test.createTestingModule({ imports: [ConfigModule.forSettings(settings), ...modules] }).compile();
}

function faultsOf(source: NodeJS.ProcessEnv, also: DeclaredSettings[] = []): readonly string[] {
  try {
    loadEnv(source, null, { declared: [...declared, ...also] });
  } catch (error) {
    if (error instanceof EnvError) return error.errors;
    throw error;
  }
  return [];
}

describe('ConfigModule', () => {
  it('hands the very settings it was given to every module, without an import there', async () => {
    const settings = settingsOf({ PORT: '0', ADMIN_TOKEN: 'abcdefgh-12345678' });
    const app = await compile(settings, Room);
    expect(app.get(Reader, { strict: false }).settings).toBe(settings);
    await app.close();
  });

  it('offers each setting by ConfigService, validated, under the name of its variable', async () => {
    const settings = settingsOf({ PORT: '8123', TRUSTED_PROXIES: '10.0.0.0/8', MIGRATE: 'off' });
    const app = await compile(settings, Room);
    const { config } = app.get(Reader, { strict: false });
    expect(config.get('PORT', { infer: true })).toBe(8123);
    expect(config.get('TRUSTED_PROXIES', { infer: true })).toEqual(['10.0.0.0/8']);
    expect(config.get('MIGRATE', { infer: true })).toBe(false);
    expect(config.get('DATABASE_URL', { infer: true })).toBe('postgres://127.0.0.1/postern');
    expect(config.get('ADMIN_TOKEN', { infer: true })).toBeUndefined();
    await app.close();
  });

  it('writes nothing into process.env, where child processes would inherit secrets, and reads nothing from it', async () => {
    const before = { ...process.env };
    const app = await compile(
      settingsOf({ ADMIN_TOKEN: 'abcdefgh-12345678', PROVIDER_URL: 'https://api.openai.com' }),
      Room,
    );
    expect(process.env).toEqual(before);
    expect(app.get(ConfigService, { strict: false }).get('PATH')).toBeUndefined();
    await app.close();
  });

  it('keeps two applications in one process apart', async () => {
    const [one, two] = await Promise.all([
      compile(settingsOf({ PORT: '1001' }), Room),
      compile(settingsOf({ PORT: '1002' }), Room),
    ]);
    for (const [app, port] of [
      [one, 1001],
      [two, 1002],
    ] as const) {
      const reader = app.get(Reader, { strict: false });
      expect([reader.settings.port, reader.config.get('PORT', { infer: true })]).toEqual([port, port]);
      await app.close();
    }
  });
});

describe('settings of a module', () => {
  it('are read from the environment and offered by ConfigService', async () => {
    const app = await compile(
      settingsOf({ QUOTA_TOKENS_PER_DAY: '42', QUOTA_SIGNING_SECRET: 'in-the-env' }),
      QuotaModule,
    );
    const { config } = app.get(QuotaService, { strict: false });
    expect(config.get('QUOTA_TOKENS_PER_DAY')).toBe(42);
    expect(config.get('QUOTA_SIGNING_SECRET')).toBe('in-the-env');
    await app.close();
  });

  it('have their defaults; an empty value is an absent one; a secret comes as a file too', async () => {
    const folder = await temporaryFolder();
    const file = join(folder, 'secret');
    await writeFile(file, 'from-a-file\n');
    const { moduleSettings } = settingsOf({ QUOTA_TOKENS_PER_DAY: '', QUOTA_SIGNING_SECRET_FILE: file });
    expect(moduleSettings).toMatchObject({
      QUOTA_TOKENS_PER_DAY: 1_000_000,
      QUOTA_SIGNING_SECRET: 'from-a-file',
    });
    await removeFolder(folder);
  });

  it("are validated together with the gateway's own: every error at once, no value", () => {
    const faults = faultsOf({ PORT: 'none', QUOTA_TOKENS_PER_DAY: 'plenty', QUOTA_SIGNING_SECRET: 'short' });
    expect(faults).toEqual([
      'PORT: must be an integer from 0 to 65535',
      'QUOTA_TOKENS_PER_DAY: must be a number',
      'QUOTA_SIGNING_SECRET: must have 8 characters or more',
    ]);
    expect(faultsOf({ QUOTA_SIGNING_SECRET: 'given-twice', QUOTA_SIGNING_SECRET_FILE: '/nowhere' })).toEqual([
      'QUOTA_SIGNING_SECRET: give either QUOTA_SIGNING_SECRET or QUOTA_SIGNING_SECRET_FILE, not both',
    ]);
    expect(faultsOf({ QUOTA_SIGNING_SECRET_FILE: '/nowhere' })).toEqual([
      'QUOTA_SIGNING_SECRET_FILE: the file cannot be read (ENOENT); check its path and permissions',
    ]);
  });

  it('cannot take a name that is taken, or no name at all', () => {
    const declare = (name: string, secrets: string[] = []) =>
      ConfigModule.forFeature(z.object({ [name]: z.string().optional() }), { secrets });
    expect(() => declare('PORT')).toThrow('the environment variable PORT is already declared');
    const other = new DeclaredSettings(z.object({ QUOTA_TOKENS_PER_DAY: z.string() }));
    expect(() => faultsOf({}, [other])).toThrow('QUOTA_TOKENS_PER_DAY is already declared');
    expect(() => declare('tokens.per.day')).toThrow('tokens.per.day is not a valid name');
    expect(() => declare('QUOTA_UNIT', ['QUOTA_SECRET'])).toThrow('QUOTA_SECRET is named as a secret');
    expect(faultsOf({}, [new DeclaredSettings(quotaSettings)])).toEqual([]);
  });

  it('must be declared before the environment is read', async () => {
    const settings = settingsOf({});
    const late = ConfigModule.forFeature(z.object({ LATE_SETTING: z.string().default('never seen') }));
    await expect(
      Test.createTestingModule({ imports: [ConfigModule.forSettings(settings), late] }).compile(),
    ).rejects.toThrow('LATE_SETTING: declared after the environment was read');
  });

  it('must be set when they are required', () => {
    const needed = new DeclaredSettings(z.object({ REQUIRED_SETTING: z.string() }));
    expect(faultsOf({}, [needed])).toEqual(['REQUIRED_SETTING: must be set']);
  });
});
