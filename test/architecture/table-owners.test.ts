import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The tables of each folder of src: its SQL alone knows their columns. */
const OWNED: Record<string, readonly string[]> = {
  admin: ['admin_session', 'admin_sign_in', 'admin_token'],
  audit: ['audit_log'],
  consumers: ['log_consumer'],
  database: ['change_counter', 'stored_function'],
  idempotency: ['idempotency_record'],
  jobs: ['provider_job'],
  keys: ['gateway_key', 'gateway_key_secret'],
  groups: ['team_group'],
  identity: ['device_request', 'person', 'refresh_token', 'sign_in', 'trust', 'trust_failure'],
  'limit-rules': ['limit_rule'],
  limits: [
    'installation_limits',
    'limit_hold',
    'limit_hot_process',
    'limit_meter',
    'limit_process',
    'limit_slot',
    'limit_spent',
  ],
  'policies-by-url': ['policy'],
  pricing: ['price', 'unpriced_model'],
  'provider-health': ['failing_provider'],
  providers: ['provider'],
  refusals: ['refusal', 'refusal_writer'],
  regressions: ['database_regression', 'gateway_run'],
  'request-log': ['request_log', 'request_log_default'],
  routes: ['route'],
  sinks: ['sink'],
  teams: ['team'],
  usage: ['usage_day', 'usage_rollup', 'usage_slot'],
  webhooks: ['webhook', 'webhook_delivery', 'webhook_event'],
};

/** Tables that another folder names in its SQL, and why. A new line needs a reason that a call of the owner cannot meet. */
const ALSO_NAMED: Record<string, string> = {
  'admin -> person': 'a session of a person who was ended is none, in the query that reads it',
  'admin -> team':
    'tokens, sessions and sign-ins show the names of their teams, in the query that reads them',
  'apply -> gateway_key': 'locks the tables of what a configuration may change, in one statement',
  'apply -> policy': 'as above',
  'apply -> price': 'as above',
  'apply -> provider': 'as above',
  'apply -> route': 'as above',
  'apply -> sink': 'as above',
  'apply -> team': 'as above',
  'apply -> team_group': 'as above',
  'apply -> trust': 'as above',
  'apply -> webhook': 'as above',
  'auth -> gateway_key': 'a key and its team are one grant, read in one query of the request path',
  'auth -> gateway_key_secret': 'as above; and the time of the last use is written in batches',
  'auth -> team': 'as above',
  'consumers -> request_log': 'gives the rows of the log to modules',
  'idempotency -> gateway_key': 'the bytes that are stored count for the team of the key',
  'identity -> gateway_key': 'a token is issued in the statement that finds its key and team in force',
  'identity -> gateway_key_secret': 'as above; and whoever has a token may end it',
  'identity -> team': 'as above',
  'identity -> audit_log': 'the name of a person who is forgotten is replaced wherever it stands',
  'identity -> request_log': 'as above',
  'identity -> webhook_event': 'as above',
  'jobs -> gateway_key': 'jobs are listed with the names of keys',
  'jobs -> team': 'jobs are listed with the names of teams',
  'keys -> admin_token':
    'an owner that is known by the name of a token owns keys made since, in the query of the keys',
  'keys -> person':
    'a member creates no key once they were ended, in the transaction that creates it; a token ends with the person that it was issued to',
  'keys -> sign_in': 'as above, and with their sign-in',
  'keys -> team': 'a key is shown, found and checked with its team',
  'keys -> trust': 'a token ends with the trust that issued it',
  'limit-rules -> limit_meter':
    'moves what was spent to the periods of another time zone, at a start with that setting',
  'limit-rules -> provider_job': 'a new budget counts what jobs use that are not settled yet',
  'limit-rules -> request_log': 'as above: what was spent is the sum of the charges in the log',
  'limit-rules -> team': 'a new budget of a group counts what its teams used, in the same query of the log',
  'limits -> gateway_key': 'limits are listed with the names of their owners, in pages',
  'limits -> limit_rule':
    'charges settle against the rules of their moment; rules are a table of their own for keys and teams',
  'limits -> team_group':
    'as above; and which limits apply to a call is read with the groups, in one snapshot',
  'limits -> team': 'limits are listed with the names of their owners, in pages',
  'policies-by-url -> gateway_key': 'a policy is shown with the names of its keys and teams',
  'policies-by-url -> team': 'as above',
  'lost-changes -> admin_session':
    'an end that Postgres has lost is applied again in the transaction that puts its entry back, whatever has ended',
  'lost-changes -> admin_token': 'as above',
  'lost-changes -> gateway_key': 'as above',
  'lost-changes -> gateway_key_secret': 'as above',
  'lost-changes -> person': 'as above',
  'lost-changes -> sign_in': 'as above',
  'lost-changes -> team': 'as above',
  'lost-changes -> trust': 'as above',
  'pricing -> request_log': 'fills in and changes the costs of stored rows',
  'provider-health -> request_log': 'counts the calls of the last minutes that failed',
  'providers -> route':
    'names of providers and routes are in one space, and a provider in a route cannot be removed',
  'providers -> team':
    'a provider is shown with its team, and must be no default of another, in the queries that read them',
  'refusals -> gateway_key': 'an alert names the key and its team, in the statement that stores the event',
  'refusals -> team': 'as above',
  'requests -> gateway_key': 'requests are listed with the names of keys',
  'requests -> request_log': 'reads the log for people',
  'requests -> team': 'requests are listed with the names of teams',
  'self -> gateway_key': 'a key sees itself and its team in one query',
  'self -> gateway_key_secret': 'as above',
  'self -> team': 'as above',
  'sinks -> request_log': 'sends the rows of the log, and says how far behind it is',
  'system -> usage_rollup': 'shows the state of the whole database in one query',
  'teams -> team_group':
    'a team is shown with the name of its group, in the query that reads it, and joins one',
  'testing -> change_counter': 'a test waits until its gateway was notified of every change',
  'testing -> request_log': 'a test reads the row of its call',
  'usage -> request_log': 'adds the rows of the log up',
  'webhooks -> gateway_key': 'finds what to alert about in one statement with the events it stores',
  'webhooks -> gateway_key_secret': 'as above',
  'webhooks -> team': 'as above',
  'webhooks -> unpriced_model': 'as above',
};

const root = join(__dirname, '../..');
const src = join(root, 'src');
const owners = new Map(Object.entries(OWNED).flatMap(([folder, tables]) => tables.map((t) => [t, folder])));

/** What follows a keyword of SQL: a table, or a list of them, each perhaps with a short name. */
const NAMED =
  /\b(?:FROM|JOIN|INTO|UPDATE|TABLE)\s+(?:ONLY\s+)?([a-z_]+(?:[ ]+[a-z]+)?(?:,\s*[a-z_]+(?:[ ]+[a-z]+)?)*)/g;

function tablesIn(text: string): string[] {
  const code = text.replace(/\/\*[^]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1');
  const lists = [...code.matchAll(NAMED)].flatMap(([, list]) => list!.split(','));
  return lists.map((name) => name.trim().split(' ')[0]!).filter((name) => owners.has(name));
}

const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
const arrows = new Set<string>();
const own = new Set<string>();
for (const file of files) {
  const folder = file.replaceAll('\\', '/').split('/')[0]!;
  for (const table of tablesIn(readFileSync(join(src, file), 'utf8')))
    if (owners.get(table) === folder) own.add(table);
    else arrows.add(`${folder} -> ${table}`);
}

describe('the tables', () => {
  it('have an owner each', () => {
    const migrations = readdirSync(join(root, 'migrations'))
      .filter((file) => file.endsWith('.ts'))
      .map((file) => readFileSync(join(root, 'migrations', file), 'utf8'));
    const created = migrations.flatMap((text) => [...text.matchAll(/\bCREATE TABLE (\w+)/g)]);
    expect([...owners.keys()].sort()).toEqual([...new Set(created.map(([, table]) => table))].sort());
  });

  it('are found in the SQL of their owners', () => {
    expect(own.size).toBeGreaterThan(15);
    expect(tablesIn('LOCK TABLE team, sink IN EXCLUSIVE MODE; SELECT FROM gateway_key k, team t')).toEqual([
      'team',
      'sink',
      'gateway_key',
      'team',
    ]);
  });

  it('are named in the SQL of other folders only for a reason', () => {
    expect([...arrows].sort()).toEqual(Object.keys(ALSO_NAMED).sort());
  });
});
