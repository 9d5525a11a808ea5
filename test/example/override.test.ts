import { rm } from 'node:fs/promises';
import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { SETTINGS } from '../../src/config/config.module.js';
import { ProviderProbe } from '../../src/providers/provider-probe.js';
import { PosternModule } from '../../src/postern.module.js';
import { GatewayHttpAdapter } from '../../src/proxy/http/gateway-http.adapter.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import { testOptions } from '../support/settings.js';

let database: TestDatabase;
let options: Awaited<ReturnType<typeof testOptions>>;
let app: INestApplication;
beforeAll(async () => {
  database = await createDatabase();
  options = await testOptions(database, { providerUrl: 'https://provider.example' });
  const probe = { run: () => Promise.resolve({ ok: true, code: 'ok', message: 'A stub.' }) };
  const testing = await Test.createTestingModule({ imports: [PosternModule.forRoot(options)] })
    .overrideProvider(ProviderProbe)
    .useValue(probe)
    .compile();
  app = testing.createNestApplication(new GatewayHttpAdapter(testing.get(SETTINGS)), {
    bodyParser: false,
    logger: false,
  });
  await app.listen(0, '127.0.0.1');
});
afterAll(async () => {
  await app.close();
  await database.drop();
  await rm(options.dataDir, { recursive: true });
});

it('calls the stub, not the provider', async () => {
  const response = await fetch(`${await app.getUrl()}/admin/v1/providers/default/test`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  expect(await response.json()).toEqual({ ok: true, code: 'ok', message: 'A stub.' });
});
