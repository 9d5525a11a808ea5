import { randomUUID } from 'node:crypto';
import { createDatabase, type TestDatabase } from '../support/database.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

async function person(): Promise<string> {
  const id = randomUUID();
  await database.query(
    `INSERT INTO person (id, issuer, subject, name) VALUES ($1, 'https://login.invalid', $2, 'Jane')`,
    [id, id],
  );
  return id;
}

async function team(): Promise<string> {
  const id = randomUUID();
  await database.query('INSERT INTO team (id, name) VALUES ($1, $2)', [id, `team-${id}`]);
  return id;
}

function key(teamId: string, personId: string | null, origin: string): Promise<unknown> {
  const id = randomUUID();
  return database.query(
    'INSERT INTO gateway_key (id, team_id, name, person_id, origin) VALUES ($1, $2, $3, $4, $5)',
    [id, teamId, `key-${id}`, personId, origin],
  );
}

describe('the tables of sign-ins', () => {
  it('allow one key of sign-ins for a person and a team, besides revoked ones', async () => {
    const [jane, search] = [await person(), await team()];
    await key(search, jane, 'sign_in');
    await key(search, jane, 'manual');
    await expect(key(search, jane, 'sign_in')).rejects.toThrow('gateway_key_sign_in_key');
    await database.query('UPDATE gateway_key SET revoked_at = now() WHERE person_id = $1', [jane]);
    await key(search, jane, 'sign_in');
    await key(await team(), jane, 'sign_in');
    await expect(key(search, null, 'sign_in')).rejects.toThrow('gateway_key_person_check');
  });

  it('know a person by the ID at the provider alone', async () => {
    const insert = (issuer: string, subject: string) =>
      database.query(
        `INSERT INTO person (id, issuer, subject, name, email) VALUES ($1, $2, $3, 'Jane', 'jane@example.com')`,
        [randomUUID(), issuer, subject],
      );
    await insert('https://one.invalid', 'jane');
    await insert('https://one.invalid', 'jane-2');
    await insert('https://two.invalid', 'jane');
    await expect(insert('https://one.invalid', 'jane')).rejects.toThrow('person_issuer_subject_key');
  });
});
