import { Module } from '@nestjs/common';
import { CallPolicies } from './call-policies.js';

/** Import it in a module that registers a CallPolicy. */
@Module({ providers: [CallPolicies], exports: [CallPolicies] })
export class PoliciesModule {}
