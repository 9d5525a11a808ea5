import { Injectable } from '@nestjs/common';
import type { Parameters } from './parameters.js';

/** The response to a token request: its members (RFC 6749 5.1). */
export type TokenResponse = Readonly<Record<string, string | number>>;

/** A grant type that the token endpoint takes. */
export interface OauthGrant {
  /** Its `grant_type`. */
  readonly type: string;
  /** What metrics call it. */
  readonly name: 'exchange' | 'device' | 'refresh';
  /** Requests since the start, by result. */
  readonly counts: ReadonlyMap<string, number>;
  /** False: it is neither taken nor announced. */
  readonly isOn: boolean;
  /** @param address of the client; null if it is unknown @throws OauthError */
  token(parameters: Parameters, address: string | null): Promise<TokenResponse>;
}

/** The grant types of the token endpoint. A module adds its own in a constructor. */
@Injectable()
export class OauthGrants {
  private readonly all: OauthGrant[] = [];

  add(grant: OauthGrant): void {
    this.all.push(grant);
  }

  /** Those of all modules, also while they are off. */
  get every(): readonly OauthGrant[] {
    return this.all;
  }

  /** Those that are taken. */
  get on(): readonly OauthGrant[] {
    return this.all.filter(({ isOn }) => isOn);
  }
}
