import { insertRow } from '../request-log/rows.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { call, fieldsOf } from './call.js';

describe('GET /admin/v1/requests/recorded', () => {
  let postern: TestGateway;
  beforeAll(async () => {
    postern = await startTestGateway();
  });
  afterAll(() => postern.stop());

  it('lists calls in the order in which they were recorded, after a position', async () => {
    const at = new Date(Date.now() - 60_000);
    const later = new Date(at.getTime() + 1);
    const rows: string[] = [];
    for (const recorded_at of [at, at, later])
      rows.push(await insertRow(postern.database, new Date(), { recorded_at, model: 'followed' }));
    // Started last, recorded first.
    const early = await insertRow(postern.database, new Date(), {
      recorded_at: new Date(at.getTime() - 1),
      model: 'followed',
    });
    const after = async (query: string) => {
      const { status, body } = await call(postern, 'GET', `/requests/recorded?model=followed&${query}`);
      expect(status).toBe(200);
      return body.data.map(({ id }) => id);
    };
    const before = `recorded_after=${new Date(at.getTime() - 2).toISOString()}`;
    expect(await after(before)).toEqual([early, ...rows]);
    expect(await after(`${before}&limit=2`)).toEqual([early, rows[0]]);
    expect(await after(`recorded_after=${at.toISOString()}&after_id=${rows[0]}`)).toEqual(rows.slice(1));
    expect(await after(`recorded_after=${at.toISOString()}`)).toEqual([rows[2]]);
    expect(await after(`${before}&status=5xx`)).toEqual([]);
  });

  it('without a position only says up to when every row can be read', async () => {
    const asked = Date.now();
    const { body } = await call(postern, 'GET', '/requests/recorded');
    const { recorded_until: until } = body as unknown as { recorded_until: string };
    expect(body).toEqual({ data: [], recorded_until: until });
    expect(Date.parse(until)).toBeLessThanOrEqual(Date.now());
    expect(Date.parse(until)).toBeGreaterThan(asked - 60_000);
  });

  it('has no times but that of the position', async () => {
    const answer = await call(postern, 'GET', '/requests/recorded?from=2030-01-01T00:00:00Z&after_id=x');
    expect(answer.status).toBe(400);
    expect(fieldsOf(answer).sort()).toEqual(['after_id', 'from']);
  });
});
