import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Files that act on the field that stands for all: they decide something by it. */
const ACT = new Map([
  ['src/cli/commands/apply/export-document.ts', 'leaves it out of the file for apply if it has its default'],
  ['src/keys/led-keys.service.ts', 'rejects a lead who allows a key of the team to open WebSockets'],
  ['src/proxy/stages/route.guard.ts', 'rejects a WebSocket of a key that may open none'],
  [
    'src/proxy/websocket/websocket-sessions.service.ts',
    'closes the WebSockets of a key that may open none any more',
  ],
]);

const root = join(__dirname, '../..');
const files = ['src', 'console/src'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .map((path) => `${folder}/${path.replaceAll('\\', '/')}`)
    // The list of migrations has their file names; the rest is generated.
    .filter((path) => /(?<!\.d)\.tsx?$/.test(path))
    .filter((path) => !['src/database/migrations.ts', 'src/client/schema.ts'].includes(path)),
);

/** As a member or a column: neither in the path of a file, nor in a command-line option. */
const FIELD = /(?<![-/\w])websockets(?![-/\w])/;

// Its column and what is derived from it, its place in the API, and how the command line and the console ask for it and
// show it. Rows, statements, grants and what is recorded follow from the columns.
it('names a field of a key in six files, besides those that act on it', () => {
  const named = files.filter((file) => FIELD.test(readFileSync(join(root, file), 'utf8')));
  expect([...ACT.keys()].filter((file) => !named.includes(file))).toEqual([]);
  expect(named.filter((file) => !ACT.has(file)).sort()).toEqual([
    'console/src/pages/keys/key-drawer.tsx',
    'console/src/pages/keys/key-fields.tsx',
    'src/cli/commands/key-output.ts',
    'src/cli/commands/keys.command.ts',
    'src/keys/gateway-key.entity.ts',
    'src/keys/keys.schema.ts',
  ]);
});
