import { startTestGateway, type TestGateway } from '../support/gateway.js';

interface Listed {
  data: { id: string; name: string; team: string; prefix: string }[];
  next_cursor: string | null;
}

const DAY_MS = 86_400_000;
const day = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString();

let postern: TestGateway;
const ids = new Map<string, string>();
beforeAll(async () => {
  postern = await startTestGateway();
  for (const [team, names] of [
    ['Customer Success', ['notebook', 'Jane', '100%_sure']],
    ['ads', ['notebook', 'ci', 'batch']],
  ] as const) {
    await postern.admin('POST', '/teams', { name: team });
    for (const name of names) {
      const { id } = await postern.admin<{ id: string }>('POST', '/keys', { team, name });
      ids.set(`${team}/${name}`, id);
    }
  }
  const set = (key: string, columns: string, ...values: unknown[]) =>
    postern.database.query(`UPDATE gateway_key SET ${columns} WHERE id = $1`, [ids.get(key), ...values]);
  await set('ads/ci', 'expires_at = $2', day(3));
  await set('ads/batch', 'expires_at = $2', day(20));
  await set('Customer Success/Jane', 'expires_at = $2', day(-1));
  await set('ads/notebook', `owner = 'sso:jane@example.com'`);
  const used = (key: string, days: number) =>
    postern.database.query('UPDATE gateway_key_secret SET last_used_at = $2 WHERE key_id = $1', [
      ids.get(key),
      day(days),
    ]);
  await used('ads/ci', -1);
  await used('ads/batch', -40);
  await set('Customer Success/notebook', 'created_at = $2', day(-100));
});
afterAll(() => postern.stop());

const list = (query: string) => postern.admin<Listed>('GET', `/keys?${query}`);
const names = async (query: string) => (await list(query)).data.map(({ team, name }) => `${team}/${name}`);
/** Whole, read a page of one at a time. */
async function paged(query: string): Promise<string[]> {
  const found: string[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const page: Listed = await list(`${query}&limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`);
    found.push(...page.data.map(({ team, name }) => `${team}/${name}`));
    cursor = page.next_cursor;
  }
  return found;
}

describe('a search for keys', () => {
  it.each([
    ['NOTE', ['ads/notebook', 'Customer Success/notebook']],
    ['ads/note', ['ads/notebook']],
    ['success note', ['Customer Success/notebook']],
    // By owner, too.
    ['jane', ['ads/notebook', 'Customer Success/Jane']],
    ['%', ['Customer Success/100%_sure']],
    ['0%_S', ['Customer Success/100%_sure']],
    ['\\', []],
    ['nobody', []],
  ])('for %j finds it by parts of the names of key and team, in any case', async (text, expected) => {
    expect(await names(`search=${encodeURIComponent(text)}`)).toEqual(expected);
  });

  it('finds the first characters of a secret, and rejects a whole one', async () => {
    const { data } = await list('search=ads/ci');
    expect(await names(`search=${data[0]!.prefix}`)).toEqual(['ads/ci']);
    await expect(list(`search=ptn_${'a'.repeat(38)}`)).rejects.toThrow(/400 .*credential_in_query/);
    await expect(list(`search=x%20ptn_${'a'.repeat(38)}`)).rejects.toThrow(/400 .*credential_in_query/);
    await expect(list(`search=ptn_${'a'.repeat(9)}`)).rejects.toThrow(/400 .*never send a whole key/);
  });

  it('finds teams in the same way', async () => {
    const teams = async (text: string) =>
      (await postern.admin<{ data: { name: string }[] }>('GET', `/teams?search=${text}`)).data.map(
        ({ name }) => name,
      );
    expect(await teams('SUCC')).toEqual(['Customer Success']);
    expect(await teams('success%20cust')).toEqual(['Customer Success']);
    expect(await teams('%25')).toEqual([]);
  });
});

describe('a list of keys', () => {
  const ALL = 6;

  it('is sorted by expiry: the next one first, ended ones last', async () => {
    const sorted = await names('sort=expires&search=s');
    expect(sorted.slice(0, 2)).toEqual(['ads/ci', 'ads/batch']);
    expect(sorted.at(-1)).toBe('Customer Success/Jane');
  });

  it('is sorted by last use: never used ones first', async () => {
    expect((await names('sort=last_used&order=asc')).slice(-2)).toEqual(['ads/batch', 'ads/ci']);
    expect((await names('sort=last_used&order=desc')).slice(0, 2)).toEqual(['ads/ci', 'ads/batch']);
  });

  it('is sorted by name, in any case', async () => {
    expect((await names('sort=name&search=a')).slice(0, 3)).toEqual(['ads/batch', 'ads/ci', 'ads/notebook']);
    expect(await names('sort=name&search=customer')).toEqual([
      'Customer Success/100%_sure',
      'Customer Success/Jane',
      'Customer Success/notebook',
    ]);
  });

  it.each(
    ['created', 'name', 'expires', 'last_used'].flatMap((sort) => [
      `${sort}&order=asc`,
      `${sort}&order=desc`,
    ]),
  )('sorted by %s is the same in pages', async (sort) => {
    const whole = await names(`sort=${sort}&limit=500`);
    expect(whole.length).toBeGreaterThanOrEqual(ALL);
    expect(await paged(`sort=${sort}`)).toEqual(whole);
  });

  it('rejects the cursor of another order', async () => {
    const { next_cursor } = await list('sort=expires&limit=1');
    for (const cursor of [next_cursor, Buffer.from('["name","a\\u0000","x"]').toString('base64url'), 'x'])
      await expect(list(`sort=name&cursor=${cursor}`)).rejects.toThrow(/400 .*cursor/);
    await expect(list(`cursor=${next_cursor}`)).rejects.toThrow(/400 .*cursor/);
  });

  it('has those that expire soon, and those that nobody uses', async () => {
    expect(await names(`status=active&sort=expires&expires_before=${day(7)}`)).toEqual(['ads/ci']);
    expect(await names(`expires_before=${day(30)}&sort=expires`)).toEqual([
      'ads/ci',
      'ads/batch',
      'Customer Success/Jane',
    ]);
    expect(await names(`unused_since=${day(-30)}&sort=last_used`)).toEqual([
      'Customer Success/notebook',
      'ads/batch',
    ]);
    expect(await names(`unused_since=${day(-90)}`)).toEqual(['Customer Success/notebook']);
  });

  it('has the keys of these IDs', async () => {
    const asked = [ids.get('ads/ci'), ids.get('ads/batch'), '01890a5d-ac96-774b-bcce-b302099a8057'];
    expect(await names(`id=${asked.join()}`)).toEqual(['ads/batch', 'ads/ci']);
    await expect(list('id=x')).rejects.toThrow(/400 /);
  });

  it('is counted for each team, by status', async () => {
    const { data } = await postern.admin<{ data: { team_id: string; active: number }[] }>(
      'GET',
      '/keys/counts',
    );
    const { data: teams } = await postern.admin<{ data: { id: string; name: string }[] }>('GET', '/teams');
    const counts = data.map(({ team_id, ...counts }) => [
      teams.find(({ id }) => id === team_id)!.name,
      counts,
    ]);
    expect(Object.fromEntries(counts)).toMatchObject({
      ads: { active: 3, disabled: 0, expired: 0, revoked: 0 },
      'Customer Success': { active: 2, disabled: 0, expired: 1, revoked: 0 },
    });
  });
});
