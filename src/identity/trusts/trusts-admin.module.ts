import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { TrustFailure } from './trust-failure.entity.js';
import { Trust } from './trust.entity.js';

/** Trusts: whose identity tokens are exchanged for tokens of a key. */
@Module({ imports: [TypeOrmModule.forFeature([Trust, TrustFailure])] })
export class TrustsAdminModule {}
