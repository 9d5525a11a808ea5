import { ADVISORY_LOCKS } from '../../src/database/advisory-locks.js';
import { FirstKeyService } from '../../src/keys/first-key.service.js';
import { digestKey } from '../../src/keys/key-secret.js';
import { KeysService, type NewKey } from '../../src/keys/keys.service.js';
import type { TeamsService } from '../../src/teams/teams.service.js';
import {
  findGrant,
  type KeysDatabase,
  keysService,
  openKeysDatabase,
  teamsService,
  TESTER,
} from './data-source.js';

describe('service', () => {
  let at: KeysDatabase;
  let teams: TeamsService;
  let keys: KeysService;

  beforeAll(async () => {
    at = await openKeysDatabase();
    teams = teamsService(at.dataSource);
    keys = keysService(at.dataSource);
    await teams.create({ name: 'search' }, TESTER);
  });
  afterAll(() => at.close());

  const order = (name: string, more: Partial<NewKey> = {}): NewKey => ({
    team: 'search',
    name,
    expiresAt: null,
    providers: null,
    endpoints: 'inference',
    idempotency: 'forward',
    ...more,
  });

  describe('KeysService', () => {
    it('stores a digest and twelve characters, and the key nowhere', async () => {
      const { key, secret } = await keys.create(order('stored'), TESTER);
      const rows = await at.database.query('SELECT * FROM gateway_key_secret WHERE key_id = $1', [key.id]);
      expect(rows).toMatchObject([
        { digest: Buffer.from(digestKey(secret!), 'hex'), prefix: secret!.slice(0, 12) },
      ]);
      const [dump] = await at.database.query<{ text: string }>(
        `SELECT (SELECT json_agg(k) FROM gateway_key k)::text || (SELECT json_agg(s) FROM gateway_key_secret s)::text AS text`,
      );
      expect(dump!.text).not.toContain(secret);
    });

    it('gives one of many orders for the same name, and every other a conflict', async () => {
      const results = await Promise.allSettled(
        Array.from({ length: 12 }, () => keys.create(order('race'), TESTER)),
      );
      const rejected = results.filter((result) => result.status === 'rejected');
      expect(rejected).toHaveLength(11);
      for (const { reason } of rejected) {
        expect(reason).toMatchObject({
          name: 'ServiceError',
          kind: 'conflict',
          details: [{ field: 'name' }],
        });
      }
      const rows = await at.database.query(
        'SELECT count(*)::int AS count FROM gateway_key_secret s JOIN gateway_key k ON k.id = s.key_id WHERE k.name = $1',
        ['race'],
      );
      expect(rows).toEqual([{ count: 1 }]);
    });

    it('lets another team use the same name', async () => {
      const { id } = await teams.create({ name: 'other' }, TESTER);
      await keys.create(order('shared'), TESTER);
      expect((await keys.create(order('shared', { team: id }), TESTER)).key).toMatchObject({
        team: 'other',
        team_id: id,
      });
    });

    it('revokes at once, keeps the first time, and frees no name', async () => {
      const { key, secret } = await keys.create(order('ended'), TESTER);
      expect((await findGrant(at.dataSource, secret!))?.enabled).toBe(true);
      const { revoked_at } = await keys.revoke(key.id, TESTER);
      expect(revoked_at).not.toBeNull();
      expect((await findGrant(at.dataSource, secret!))?.enabled).toBe(false);
      expect((await keys.revoke(key.id, TESTER)).revoked_at).toBe(revoked_at);
      await expect(keys.create(order('ended'), TESTER)).rejects.toMatchObject({ kind: 'conflict' });
    });

    it.each(['', 'nonsense', '01890a5d-ac96-774b-bcce-b302099a8057', "' OR 1=1 --"])(
      'finds no key %j',
      async (id) => {
        await expect(keys.get(id)).rejects.toMatchObject({ kind: 'not_found' });
        await expect(keys.revoke(id, TESTER)).rejects.toMatchObject({ kind: 'not_found' });
      },
    );

    it('filters by the status that the key has in effect', async () => {
      const team = 'statuses';
      const { id } = await teams.create({ name: team }, TESTER);
      for (const name of ['a-active', 'b-disabled', 'c-expired', 'd-revoked'])
        await keys.create(order(name, { team }), TESTER);
      await at.database.query(`UPDATE gateway_key SET disabled = true WHERE name = 'b-disabled'`);
      await at.database.query(
        `UPDATE gateway_key SET expires_at = now() - interval '1 s' WHERE name = 'c-expired'`,
      );
      await at.database.query(`UPDATE gateway_key SET revoked_at = now() WHERE name = 'd-revoked'`);
      const names = async (status: 'active' | 'disabled' | 'expired' | 'revoked') =>
        (await keys.list({ team, status, limit: 10 })).data.map(({ name }) => name);
      expect(await names('active')).toEqual(['a-active']);
      expect(await names('disabled')).toEqual(['b-disabled']);
      expect(await names('expired')).toEqual(['c-expired']);
      expect(await names('revoked')).toEqual(['d-revoked']);
      await at.database.query('UPDATE team SET disabled = true WHERE id = $1', [id]);
      expect(await names('active')).toEqual([]);
      expect(await names('disabled')).toEqual(['b-disabled', 'a-active']);
    });

    it('pages newest first; what is made meanwhile neither repeats nor hides a key', async () => {
      const team = 'pages';
      await teams.create({ name: team }, TESTER);
      for (let i = 0; i < 5; i++) await keys.create(order(`k${i}`, { team }), TESTER);
      const one = await keys.list({ team, limit: 2 });
      await keys.create(order('meanwhile', { team }), TESTER);
      const two = await keys.list({ team, limit: 2, cursor: one.next_cursor! });
      const three = await keys.list({ team, limit: 2, cursor: two.next_cursor! });
      expect([one, two, three].flatMap(({ data }) => data.map(({ name }) => name))).toEqual([
        'k4',
        'k3',
        'k2',
        'k1',
        'k0',
      ]);
      expect(three.next_cursor).toBeNull();
    });
  });
});

describe('first key', () => {
  let at: KeysDatabase;
  let first: FirstKeyService;

  beforeEach(async () => {
    at = await openKeysDatabase();
    first = new FirstKeyService(at.dataSource);
  });
  afterEach(() => at.close());

  describe('the first key', () => {
    it('is made once by replicas that start together, and opens the gateway', async () => {
      const made = await Promise.all(Array.from({ length: 8 }, () => first.create()));
      const keys = made.filter((one) => one !== null);
      expect(keys).toHaveLength(1);
      expect(await findGrant(at.dataSource, keys[0]!.key)).toMatchObject({
        enabled: true,
        endpoints: 'inference',
        idempotency: 'forward',
        providers: null,
        expiresAt: Infinity,
      });
      const page = await keysService(at.dataSource).list({ limit: 10 });
      expect(page.data).toMatchObject([
        { team: 'default', name: 'first', prefix: keys[0]!.key.slice(0, 12) },
      ]);
    });

    it('does not wait for a replica that is busy with the partitions', async () => {
      const busy = at.dataSource.createQueryRunner();
      await busy.query('SELECT pg_advisory_lock($1)', [ADVISORY_LOCKS.partitions]);
      await busy.query("SET lock_timeout = '100ms'");
      expect(await first.create()).not.toBeNull();
      await busy.query('SELECT pg_advisory_unlock_all()');
      await busy.release();
    });

    it('is not made where there is a team already', async () => {
      await teamsService(at.dataSource).create({ name: 'search' }, TESTER);
      expect(await first.create()).toBeNull();
    });

    it('is not made again after it was revoked', async () => {
      await first.create();
      const keys = keysService(at.dataSource);
      const { data } = await keys.list({ limit: 1 });
      await keys.revoke(data[0]!.id, TESTER);
      expect(await first.create()).toBeNull();
    });
  });
});
