import { Injectable } from '@nestjs/common';
import { AuthGuard } from '@nestjs/passport';
import { Refusal } from '../refusal.js';
import type { Caller } from './caller.js';

/** Who is calling? Lets only holders of a good gateway key pass, and leaves the Caller on the request. */
@Injectable()
export class GatewayKeyGuard extends AuthGuard() {
  override handleRequest<T = Caller>(error: Error | null, caller: T | false | null): T {
    if (error) throw error;
    if (!caller) throw new Refusal('invalid_api_key');
    return caller;
  }
}
