// Exchanges identity tokens, from a process of its own, so that what it does delays no other call's generator. Or issues them
// straight in Postgres, by the statement of the gateway, which then does nothing for them: what is left is the machine's share.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import pg from 'pg';
import { Pool } from 'undici';
import { issueToken } from '../../dist/src/identity/trusts/issued-tokens.js';
import { Schedule } from '../statistics.mjs';

const CONNECTIONS = 16;
const CLOSED_CONNECTIONS = 4;
/** As many as the gateway has by default. */
const DATABASE_CONNECTIONS = 10;
const LIFE_S = 7_000;
const ISSUER = 'https://issuer.invalid';

/** An issuer whose key is stored in the trusts. */
export class Identities {
  static async create() {
    const { privateKey, publicKey } = await generateKeyPair('RS256', { extractable: true });
    const jwk = { ...(await exportJWK(publicKey)), kid: 'one', use: 'sig', alg: 'RS256' };
    return new Identities(privateKey, jwk);
  }

  constructor(privateKey, jwk) {
    this.privateKey = privateKey;
    this.terms = { issuer: ISSUER, audience: 'gateway', jwks: { keys: [jwk] }, claims: { sub: ['job'] } };
  }

  /** One serves for all: it may be exchanged several times, and is verified each time. */
  sign() {
    const now = Math.floor(Date.now() / 1_000);
    return new SignJWT({ iss: ISSUER, sub: 'job', aud: 'gateway', iat: now, exp: now + LIFE_S })
      .setProtectedHeader({ alg: 'RS256', kid: 'one', typ: 'JWT' })
      .sign(this.privateKey);
  }
}

/**
 * @param url of the database, for orders with `directly`
 * @returns what issues at a rate, or as fast as it goes, for a time; it returns latencies in ms and counts of statuses
 */
export function startIssuing(workplace, port, url) {
  const child = fork(fileURLToPath(import.meta.url), [String(port), url]);
  workplace.onClose(() => void child.kill());
  return (order) =>
    new Promise((done, fail) => {
      child.once('exit', () => fail(new Error('the process that issues tokens ended')));
      child.once('message', (result) => {
        child.removeAllListeners('exit');
        done(result);
      });
      child.send(order);
    });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [port, url] = process.argv.slice(2);
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: CONNECTIONS });
  const database = new pg.Pool({ connectionString: url, max: DATABASE_CONNECTIONS });
  process.on('message', (order) => {
    const issue = order.directly ? directly(database) : byGateway(pool, order.identity);
    void issueFor(issue, order).then((result) => process.send(result));
  });
  process.on('disconnect', () => process.exit(0));
}

/** @returns the status of the response */
function byGateway(pool, identity) {
  let count = 0;
  return async ({ name }) => {
    const { statusCode, body } = await pool.request({
      method: 'POST',
      path: '/oauth/token',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        // From one address, 50 tokens a second are verified.
        'x-forwarded-for': `10.0.0.${++count % 100}`,
      },
      body: new URLSearchParams({
        grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
        subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
        subject_token: identity,
        trust: name,
      }).toString(),
    });
    await body.dump();
    return statusCode;
  };
}

/** @returns 200, or `none` if none was issued */
function directly(database) {
  const createQueryRunner = () => {
    let client;
    return {
      connect: async () => (client = await database.connect()),
      release: async () => client?.release(),
    };
  };
  return async ({ id, version }) => {
    const terms = { trustId: id, version, subject: 'job', from: 0, until: 32_503_680_000 };
    const { token } = await issueToken({ createQueryRunner }, terms);
    return token === null ? 'none' : 200;
  };
}

async function issueFor(one, { trusts, perSecond, forMs }) {
  const latencies = [];
  const statuses = {};
  let count = 0;
  const issue = async (due) => {
    const status = await one(trusts[++count % trusts.length]);
    statuses[status] = (statuses[status] ?? 0) + 1;
    latencies.push(performance.now() - due);
  };
  const end = performance.now() + forMs;
  if (perSecond === null) {
    const loop = async () => {
      while (performance.now() < end) await issue(performance.now());
    };
    await Promise.all(Array.from({ length: CLOSED_CONNECTIONS }, loop));
  } else {
    const schedule = new Schedule(performance.now(), perSecond);
    const total = Math.round((perSecond * forMs) / 1_000);
    const sent = [];
    await new Promise((done) => {
      const timer = setInterval(() => {
        for (let due = schedule.due(performance.now()); due > 0 && sent.length < total; due--)
          sent.push(issue(schedule.take()));
        if (sent.length < total) return;
        clearInterval(timer);
        done();
      }, 1);
    });
    await Promise.all(sent);
  }
  return { latencies, statuses };
}
