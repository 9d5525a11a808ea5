import { rm } from 'node:fs/promises';
import { HttpService } from '@nestjs/axios';
import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { throwError } from 'rxjs';
import { SETTINGS } from '../../src/config/config.module.js';
import { DatabaseService } from '../../src/database/database.service.js';
import { GatewayError } from '../../src/errors/gateway-error.js';
import { PosternModule } from '../../src/postern.module.js';
import { GatewayHttpAdapter } from '../../src/proxy/http/gateway-http.adapter.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import { testOptions } from '../support/settings.js';

let database: TestDatabase;
let options: Awaited<ReturnType<typeof testOptions>>;
let app: INestApplication;
const asked: unknown[] = [];
beforeAll(async () => {
  database = await createDatabase();
  options = await testOptions(database, { providerUrl: 'https://provider.example' });
  const http = {
    request: ({ method, url }: { method: string; url: string }) => {
      asked.push([method, url]);
      return throwError(() => new GatewayError('upstream_timeout'));
    },
  };
  const testing = await Test.createTestingModule({ imports: [PosternModule.forRoot(options)] })
    .overrideProvider(HttpService)
    .useValue(http)
    .compile();
  app = testing.createNestApplication(new GatewayHttpAdapter(testing.get(SETTINGS)), {
    bodyParser: false,
    logger: false,
  });
  await app.listen(0, '127.0.0.1');
  const postgres = app.get(DatabaseService, { strict: false });
  await eventually(() => postgres.notReady === null);
});
afterAll(async () => {
  await app.close();
  await database.drop();
  await rm(options.dataDir, { recursive: true });
});

it('forwards calls through a stub of HttpService', async () => {
  const created = await fetch(`${await app.getUrl()}/admin/v1/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ team: 'default', name: 'stub' }),
  });
  const { key } = (await created.json()) as { key: string };
  const response = await fetch(`${await app.getUrl()}/v1/models?a=b`, {
    headers: { authorization: `Bearer ${key}` },
  });
  expect([response.status, response.headers.get('x-gateway-error')]).toEqual([504, 'upstream_timeout']);
  expect(asked).toEqual([['GET', '/v1/models?a=b']]);
});
