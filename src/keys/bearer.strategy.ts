import { Injectable } from '@nestjs/common';
import { PassportStrategy } from '@nestjs/passport';
import type { Request } from 'express';
import { Strategy } from 'passport-http-bearer';
import type { Caller } from './caller.js';
import { readCredential } from './credential.js';
import { KeyLookupService } from './key-lookup.service.js';

export const GATEWAY_KEY = 'gateway-key';

/**
 * passport-http-bearer, fed with one header of our choosing: left to itself it would also take a token from the query
 * or the body, and knows nothing of the headers that Anthropic, Azure and Google clients use.
 */
@Injectable()
export class BearerStrategy extends PassportStrategy(Strategy, GATEWAY_KEY) {
  /** Given by passport to the copy of the strategy that serves one request. */
  declare error: (fault: Error) => void;

  constructor(private readonly lookup: KeyLookupService) {
    super();
  }

  override authenticate(req: Request): void {
    let token: string | null;
    try {
      token = readCredential(req.rawHeaders);
    } catch (refusal) {
      this.error(refusal as Error);
      return;
    }
    const headers = token === null ? {} : { authorization: `Bearer ${token}` };
    super.authenticate({ headers } as Request);
  }

  async validate(key: string): Promise<Caller | false> {
    const grant = await this.lookup.find(key);
    return grant !== null && { grant, key };
  }
}
