import { createDatabase } from '../support/database.js';
import { read } from './pages.js';

it('the reference lists every view of the database', async () => {
  const database = await createDatabase();
  const views = await database.query<{ name: string }>(
    "SELECT viewname AS name FROM pg_views WHERE schemaname = 'public' ORDER BY 1",
  );
  await database.drop();
  const [, section] = read('docs/reference/request-log-columns.md').split('\n## Views\n');
  const listed = [...section!.matchAll(/^- `(\w+)`: /gm)].map(([, name]) => name!);
  expect(listed.sort()).toEqual(views.map(({ name }) => name));
});
