import { createDatabase, type TestDatabase } from '../support/database.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { call } from './call.js';
import { type Relay, relayTo } from './database-relay.js';

let database: TestDatabase;
let relay: Relay;
let postern: TestGateway;
beforeAll(async () => {
  database = await createDatabase();
  relay = await relayTo(database.url);
  postern = await startTestGateway({ DATABASE_URL: relay.url });
});
afterAll(async () => {
  await postern.stop();
  await relay.cut();
  await database.drop();
});

describe('the admin API without its tables', () => {
  it('answers 500 with an id and neither SQL nor table names', async () => {
    await database.query('ALTER TABLE team RENAME TO team_gone');
    const { status, body } = await call(postern, 'GET', '/teams');
    await database.query('ALTER TABLE team_gone RENAME TO team');
    expect(status).toBe(500);
    expect(body.error).toEqual({
      code: 'internal_error',
      message: expect.stringMatching(/under [0-9a-f-]{36}\.$/) as string,
      details: [],
    });
  });
});

describe('the admin API without its database', () => {
  const roads = [
    ['GET', '/teams', undefined],
    ['GET', '/keys', undefined],
    ['GET', '/requests', undefined],
    ['POST', '/teams', { name: 'later' }],
    ['POST', '/keys', { team: 'default', name: 'later' }],
  ] as const;

  it('answers 503 with retry-after, and works again without a restart', async () => {
    await relay.cut();
    for (const [method, path, body] of roads) {
      const answer = await call(postern, method, path, body);
      expect(answer.status).toBe(503);
      expect(answer.headers.get('retry-after')).toBe('1');
      expect(answer.body.error).toMatchObject({ code: 'database_unavailable', details: [] });
    }
    await relay.mend();
    for (const [method, path, body] of roads) {
      expect((await call(postern, method, path, body)).status).toBe(method === 'GET' ? 200 : 201);
    }
  });
});
