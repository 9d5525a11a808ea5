import { rm } from 'node:fs/promises';
import { HttpService } from '@nestjs/axios';
import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { throwError } from 'rxjs';
import { AppModule } from '../../src/app.module.js';
import type { Settings } from '../../src/config/settings.js';
import { DatabaseService } from '../../src/database/database.service.js';
import { GatewayError } from '../../src/errors/gateway-error.js';
import { FirstKeyService } from '../../src/keys/first-key.service.js';
import { GatewayHttpAdapter } from '../../src/proxy/http/gateway-http.adapter.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { testSettings } from '../support/settings.js';

let database: TestDatabase;
let settings: Settings;
let app: INestApplication;
const asked: unknown[] = [];
beforeAll(async () => {
  database = await createDatabase();
  settings = await testSettings(database, { PROVIDER_URL: 'https://provider.example' });
  const http = {
    request: ({ method, url }: { method: string; url: string }) => {
      asked.push([method, url]);
      return throwError(() => new GatewayError('upstream_timeout'));
    },
  };
  const testing = await Test.createTestingModule({ imports: [AppModule.forSettings(settings)] })
    .overrideProvider(HttpService)
    .useValue(http)
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

it('forwards calls through a stub of HttpService', async () => {
  const { key } = (await app.get(FirstKeyService, { strict: false }).create())!;
  const response = await fetch(`${await app.getUrl()}/v1/models?a=b`, {
    headers: { authorization: `Bearer ${key}` },
  });
  expect([response.status, response.headers.get('x-gateway-error')]).toEqual([504, 'upstream_timeout']);
  expect(asked).toEqual([['GET', '/v1/models?a=b']]);
});
