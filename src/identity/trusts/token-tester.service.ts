import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { type Check, checksOf, subjectOf, timesOf } from './check-claims.js';
import { type IdentityToken, RejectedToken, readIdentityToken } from './identity-token.js';
import { isKeyInForce } from './issued-tokens.js';
import { IssuerKeys } from './issuer-keys.service.js';
import type { Trust } from './trust.entity.js';
import type { TokenVerdict } from './trusts.schema.js';

/** Holds identity tokens against trusts and issues nothing. */
@Injectable()
export class TokenTester {
  constructor(
    private readonly keys: IssuerKeys,
    private readonly dataSource: DataSource,
    @InjectSettings() private readonly env: Settings,
  ) {}

  /**
   * Makes every check that can be made, but that of the client's network. The clock of this process decides.
   *
   * @throws errors of the database
   */
  async test(trust: Trust, text: string): Promise<TokenVerdict> {
    const token = await rejectionOr(() => readIdentityToken(text));
    if (token instanceof RejectedToken) return verdictOf([{ name: 'format', problem: token }], null);
    const checks: Check[] = [
      { name: 'format', problem: null },
      { name: 'enabled', problem: trust.enabled ? null : disabled('the trust is disabled') },
    ];
    // Nothing is read from an issuer that is no longer trusted.
    if (trust.enabled) {
      const problem = (await rejectionOr(() => this.keys.verify(trust, token))) ?? null;
      checks.push({ name: 'signature', problem });
    }
    const { oidcClientId } = this.env;
    const claims = [...checksOf(token, { ...trust, cidrs: null }, { address: null, oidcClientId })];
    checks.push(...claims.filter(({ name }) => name !== 'address'));
    if (claims.some(({ name, problem }) => name === 'lifetime' && problem === null))
      checks.push({ name: 'time', problem: timeProblem(token) });
    const isInForce = await isKeyInForce(this.dataSource, trust.id);
    checks.push({
      name: 'key',
      problem: isInForce ? null : disabled('its key or its team is disabled, expired or revoked'),
    });
    return verdictOf(checks, token);
  }
}

function verdictOf(checks: readonly Check[], token: IdentityToken | null): TokenVerdict {
  const first = checks.find(({ problem }) => problem !== null)?.problem ?? null;
  return {
    accepted: first === null,
    reason: first?.reason ?? null,
    detail: first?.words ?? null,
    subject: first === null ? subjectOf(token!.claims.sub as string) : null,
    checks: checks.map(({ name, problem }) => ({
      name,
      met: problem === null,
      detail: problem?.words ?? null,
    })),
  };
}

function timeProblem({ claims }: IdentityToken): RejectedToken | null {
  const { from, until } = timesOf(claims);
  const now = Date.now() / 1000;
  if (now > until) return new RejectedToken('expired', 'it has expired');
  return now < from ? new RejectedToken('not_yet_valid', 'its iat or nbf is in the future') : null;
}

function disabled(detail: string): RejectedToken {
  return new RejectedToken('disabled', detail);
}

async function rejectionOr<T>(work: () => T | Promise<T>): Promise<T | RejectedToken> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof RejectedToken) return error;
    throw error;
  }
}
