// `npm run init:env`: writes .env with random secrets, for compose and production; those that an earlier start made for
// itself are taken over. Never overwrites one: a lost MASTER_KEY is lost provider secrets. Plain Node, works before `npm ci`.
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';

const path = resolve('.env');

// Letters, digits, - and _ only: valid as a bearer token and, unescaped, inside a postgres:// URL.
const token = () => randomBytes(32).toString('base64url');

const SECRETS = 'data/secrets';
const kept = [];
/** What a start without .env has made and uses. */
function keptOr(name, make) {
  try {
    const secret = readFileSync(resolve(SECRETS, name), 'utf8').trim();
    kept.push(name);
    return secret;
  } catch (error) {
    if (error.code === 'ENOENT') return make();
    throw error;
  }
}

const content =
  () => `# Written by npm run init:env. Keep a copy in a safe place: without MASTER_KEY stored provider secrets are lost.
# Every other setting is in .env.example.

# The default provider, e.g. https://api.openai.com (without /v1), and its key.
PROVIDER_URL=
PROVIDER_KEY=

# Bearer token of the admin API.
ADMIN_TOKEN=${keptOr('admin-token', token)}
# Seals what is secret at rest.
MASTER_KEY=${keptOr('master-key', () => randomBytes(32).toString('base64'))}
# Password of the Postgres in docker-compose.yml. Elsewhere set DATABASE_URL.
POSTGRES_PASSWORD=${token()}
`;

try {
  // wx: created or refused in one step. 0600: secrets are for their owner only.
  writeFileSync(path, content(), { flag: 'wx', mode: 0o600 });
  console.log(
    `Wrote ${path} (readable by you only) with random ADMIN_TOKEN, MASTER_KEY and POSTGRES_PASSWORD.`,
  );
  if (kept.length > 0) console.log(`Taken over from ${SECRETS}: ${kept.join(', ')}.`);
  console.log('Next: set PROVIDER_URL and PROVIDER_KEY in it, then `docker compose up -d` or `npm start`.');
} catch (error) {
  if (error.code === 'EEXIST') {
    console.error(`${path} exists and was left alone. Rename or remove it first if you want new secrets.`);
  } else {
    console.error(`Cannot write ${path} (${error.code ?? error.message}). Check the folder's permissions.`);
  }
  process.exitCode = 1;
}
