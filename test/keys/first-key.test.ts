import { ADVISORY_LOCKS } from '../../src/database/advisory-locks.js';
import { FirstKeyService } from '../../src/keys/first-key.service.js';
import { KeysService } from '../../src/keys/keys.service.js';
import { TeamsService } from '../../src/keys/teams.service.js';
import { findGrant, type KeysDatabase, openKeysDatabase, TESTER } from './data-source.js';

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
    const page = await new KeysService(at.dataSource, new TeamsService(at.dataSource)).list({ limit: 10 });
    expect(page.data).toMatchObject([{ team: 'default', name: 'first', prefix: keys[0]!.key.slice(0, 12) }]);
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
    await new TeamsService(at.dataSource).create({ name: 'search' }, TESTER);
    expect(await first.create()).toBeNull();
  });

  it('is not made again after it was revoked', async () => {
    await first.create();
    const keys = new KeysService(at.dataSource, new TeamsService(at.dataSource));
    const { data } = await keys.list({ limit: 1 });
    await keys.revoke(data[0]!.id, TESTER);
    expect(await first.create()).toBeNull();
  });
});
