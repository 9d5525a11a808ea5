import { Injectable, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { ConfigModule, InjectEnv } from '../../src/config/config.module.js';
import { type Env, loadEnv } from '../../src/config/env.js';

@Injectable()
class Reader {
  constructor(@InjectEnv() readonly env: Env) {}
}

@Module({ providers: [Reader], exports: [Reader] })
class Room {}

describe('ConfigModule', () => {
  it('hands the very Env it was given to every module, without an import there', async () => {
    const env = loadEnv({ PORT: '0', ADMIN_TOKEN: 'abcdefgh-12345678' });
    const app = await Test.createTestingModule({ imports: [ConfigModule.forEnv(env), Room] }).compile();
    expect(app.get(Reader, { strict: false }).env).toBe(env);
    await app.close();
  });

  it('writes nothing into process.env, where child processes would inherit secrets', async () => {
    const before = { ...process.env };
    const env = loadEnv({ ADMIN_TOKEN: 'abcdefgh-12345678', PROVIDER_URL: 'https://api.openai.com' });
    const app = await Test.createTestingModule({ imports: [ConfigModule.forEnv(env)] }).compile();
    expect(process.env).toEqual(before);
    await app.close();
  });

  it('keeps two applications in one process apart', async () => {
    const compile = (port: string) =>
      Test.createTestingModule({ imports: [ConfigModule.forEnv(loadEnv({ PORT: port })), Room] }).compile();
    const [one, two] = await Promise.all([compile('1001'), compile('1002')]);
    expect(one.get(Reader, { strict: false }).env.port).toBe(1001);
    expect(two.get(Reader, { strict: false }).env.port).toBe(1002);
    await Promise.all([one.close(), two.close()]);
  });
});
