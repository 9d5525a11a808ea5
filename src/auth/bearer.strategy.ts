import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { PassportStrategy } from '@nestjs/passport';
import type { Request } from 'express';
import passport from 'passport';
import { Strategy } from 'passport-http-bearer';
import type { Caller } from './caller.js';
import { readCredential } from './credential.js';
import { KeyLookupService } from './key-lookup.service.js';

/** The part of a request that passport-http-bearer sees, with the request itself. */
interface CredentialView {
  headers: { authorization?: string };
  from: Request;
}

/**
 * passport-http-bearer with one chosen header. By default it would also accept a token from the query or the body,
 * and it ignores the headers of Anthropic, Azure and Google clients. Its own name, `bearer`, is left to a strategy of an
 * application's own.
 */
@Injectable()
export class BearerStrategy extends PassportStrategy(Strategy, 'postern-gateway-key') {
  /**
   * passport keeps strategies in one table per process: under one name, the last gateway started in a process (replicas
   * under test) would authenticate for all. Never pass passport the strategy itself: it copies only strategies that it finds by name,
   * and would mix up the results of concurrent calls.
   */
  declare name: string;
  /** Set by passport on the copy of the strategy for one request. */
  declare error: (error: Error) => void;

  constructor(private readonly lookup: KeyLookupService) {
    super({ passReqToCallback: true });
    this.name = `gateway-key-${randomUUID()}`;
    passport.use(this.name, this);
  }

  override authenticate(req: Request): void {
    let token: string | null;
    try {
      token = readCredential(req.rawHeaders);
    } catch (error) {
      this.error(error as Error);
      return;
    }
    const headers = token === null ? {} : { authorization: `Bearer ${token}` };
    const view: CredentialView = { headers, from: req };
    super.authenticate(view as unknown as Request);
  }

  async validate({ from }: CredentialView, key: string): Promise<Caller | false> {
    const { version } = this.lookup;
    const grant = await this.lookup.find(key, from);
    return grant !== null && { grant, key, version };
  }
}
