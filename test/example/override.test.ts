import { rm } from 'node:fs/promises';
import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { AppModule } from '../../src/app.module.js';
import type { Settings } from '../../src/config/settings.js';
import { DatabaseService } from '../../src/database/database.service.js';
import { ProviderProbe } from '../../src/providers/provider-probe.js';
import { GatewayHttpAdapter } from '../../src/proxy/http/gateway-http.adapter.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import { testSettings } from '../support/settings.js';

let database: TestDatabase;
let settings: Settings;
let app: INestApplication;
beforeAll(async () => {
  database = await createDatabase();
  settings = await testSettings(database, { PROVIDER_URL: 'https://provider.example' });
  const probe = { run: () => Promise.resolve({ ok: true, code: 'ok', message: 'A stub.' }) };
  const testing = await Test.createTestingModule({ imports: [AppModule.forSettings(settings)] })
    .overrideProvider(ProviderProbe)
    .useValue(probe)
    .compile();
  app = testing.createNestApplication(new GatewayHttpAdapter(settings), { bodyParser: false, logger: false });
  await app.listen(0, '127.0.0.1');
  await app.get(DatabaseService).start(5_000);
});
afterAll(async () => {
  await app.close();
  await database.drop();
  await rm(settings.dataDir, { recursive: true });
});

it('calls the stub, not the provider', async () => {
  const response = await fetch(`${await app.getUrl()}/admin/v1/providers/default/test`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  expect(await response.json()).toEqual({ ok: true, code: 'ok', message: 'A stub.' });
});
