import { Injectable } from '@nestjs/common';
import { withServices } from '../../src/cli/with-services.js';
import { TeamsService } from '../../src/teams/teams.service.js';
import { createDatabase, type TestDatabase } from '../support/database.js';

/** A service of a module of one's own, on one of the gateway's. */
@Injectable()
class TeamCounter {
  constructor(private readonly teams: TeamsService) {}

  async count(): Promise<number> {
    return (await this.teams.list({ limit: 500 })).data.length;
  }
}

let database: TestDatabase;
const given = process.env.DATABASE_URL;
beforeAll(async () => {
  database = await createDatabase();
  process.env.DATABASE_URL = database.url;
});
afterAll(async () => {
  if (given === undefined) delete process.env.DATABASE_URL;
  else process.env.DATABASE_URL = given;
  await database.drop();
});

it('gives a command the services of its own module beside those of the gateway', async () => {
  await database.query(`INSERT INTO team (id, name) VALUES ('01890a5d-ac96-774b-bcce-b302099a8057', 'one')`);
  const count = await withServices((app) => app.get(TeamCounter).count(), { providers: [TeamCounter] });
  expect(count).toBe(1);
});
