import { Injectable, UnauthorizedException } from '@nestjs/common';
import { hash, timingSafeEqual } from 'node:crypto';
import type { Response } from 'express';
import { DataSource } from 'typeorm';
import { InjectSettings } from '../../config/config.module.js';
import { required, type Settings } from '../../config/settings.js';
import { KnownEnds } from '../../database/known-ends/known-ends.js';
import { type Actor, adminAt } from '../../platform/actor.js';
import { TokenFailures } from '../token-failures.js';
import type { Access } from './access.js';
import { CredentialLookups } from './credential-lookups.js';
import type { Role } from './role.js';
import { digestToken, isWellFormedToken } from './token-format.js';

interface TokenRow {
  id: string;
  name: string;
  role: Role;
  teams: string[] | null;
  seen_lately: boolean;
}

const FIND = `
  SELECT id, name, role, teams, COALESCE(last_used_at > now() - interval '1 minute', false) AS seen_lately
  FROM admin_token
  WHERE digest = decode($1, 'hex') AND (expires_at IS NULL OR expires_at > now())`;
const USED = 'UPDATE admin_token SET last_used_at = now() WHERE id = $1';

/** Checks tokens of the admin API: ADMIN_TOKEN, and those in the table admin_token. */
@Injectable()
export class TokenVerifier {
  private readonly expected: Buffer;

  constructor(
    @InjectSettings() env: Settings,
    private readonly dataSource: DataSource,
    private readonly lookups: CredentialLookups,
    private readonly failures: TokenFailures,
    private readonly ends: KnownEnds,
  ) {
    this.expected = sha256(required(env, 'adminToken'));
  }

  /**
   * The right token always passes, also from an address that sent many wrong ones: otherwise anybody behind the same proxy
   * could lock the operator out. The token's length protects it from guessing.
   *
   * @param hint appended to the message of an error: how to send a token
   * @throws UnauthorizedException for a wrong token, which is counted; TooManyUnknown in a flood
   */
  async verify(token: string, address: string | null, res: Response, hint: string): Promise<Access> {
    // timingSafeEqual needs equal lengths: digests have them and do not reveal the token's length.
    if (timingSafeEqual(sha256(token), this.expected)) {
      return { actor: adminAt(address), role: 'admin', scope: null, userId: 'admin-token', tokenId: null };
    }
    const row = isWellFormedToken(token) ? await this.find(token, address) : undefined;
    if (row !== undefined) {
      const actor: Actor = { name: `token:${row.name}`, address };
      return { actor, role: row.role, scope: row.teams, userId: `token:${row.id}`, tokenId: row.id };
    }
    return this.reject(address, res, hint);
  }

  /** Counts a wrong token. @throws UnauthorizedException always */
  async reject(address: string | null, res: Response, hint: string): Promise<never> {
    const wait = await this.failures.count(address);
    if (wait === 0) throw new UnauthorizedException(`The admin token is missing or wrong. ${hint}`);
    // Each further guess costs the client a new connection.
    res.set({ 'retry-after': String(wait), connection: 'close' });
    throw new UnauthorizedException(
      'Wrong admin token. Too many wrong tokens came from this address; send the configured ADMIN_TOKEN.',
    );
  }

  private async find(token: string, address: string | null): Promise<TokenRow | undefined> {
    const digest = digestToken(token);
    const read = async () => {
      const [row] = await this.dataSource.query<TokenRow[]>(FIND, [digest]);
      return row === undefined || this.ends.hasEnded(row.id) ? undefined : row;
    };
    const row = await this.lookups.find(digest, address, read);
    if (row !== undefined && !row.seen_lately) await this.dataSource.query(USED, [row.id]);
    return row;
  }
}

function sha256(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}
