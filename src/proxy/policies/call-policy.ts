import { applyDecorators, Injectable } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import type { Grant } from '../../auth/caller.js';
import type { CallTicket } from '../../request-log/finished-call.js';
import type { PolicyCall } from './policy-call.js';

/**
 * Decides whether a call is forwarded. It is called after the key and the route were checked and before the call is
 * journalled, so a rejected call has no row; `postern_refusals_total` counts it.
 */
export interface CallPolicy {
  /** Policies run in ascending order; by default 0. The gateway's own model rules have -100. */
  readonly order?: number;

  /**
   * True if the policy applies to calls with this key; by default it applies to all. Called once for each version of a key,
   * not for each call, so that calls of a key without a policy cost nothing. If it depends on something else, call
   * `CallPolicies.changed()` when that has changed.
   */
  appliesTo?(grant: Grant): boolean;

  /**
   * Names of the rules by which `admit` decides about a key now. A WebSocket is closed once there is one under which it was
   * not admitted. Asked again when `CallPolicies.changed()` was called.
   */
  rulesOf?(grant: Grant): readonly string[];

  /**
   * True if `admit` reads the body, its model or another member of it. Then the body is gathered first: at most 32 MiB, else
   * the call gets 413. By default the body is streamed and `call.body` is null.
   */
  needsBody?(call: PolicyCall): boolean;

  /**
   * Admits a call. It may return a promise, but a policy that returns at once saves the call a tick of the event loop.
   *
   * @returns a ticket, if the policy is to be notified of the end of the call
   * @throws GatewayError, or any HttpException, to reject the call
   */
  admit(call: PolicyCall): Admission | Promise<Admission>;
}

/** Marks the classes of policies. */
export const PolicyClass = DiscoveryService.createDecorator();

/**
 * Makes a provider a policy of all calls:
 *
 *     @CallPolicy()
 *     export class ClosingDayPolicy implements CallPolicy {
 *
 * The start fails if Nest would not make it then, as with a dependency in request scope: calls would be forwarded unasked.
 */
export function CallPolicy(): ClassDecorator {
  return applyDecorators(Injectable(), PolicyClass());
}

/** What a policy returns for a call that it admits. */
export type Admission = CallTicket | null | undefined | void;
