import type { KafkaClient, KafkaOptions } from './client.ts';

const timeoutMs = 5_000;

/**
 * Connects once to verify TLS and login settings, if any are configured. Rejects with the name of the setting
 * if the failure is permanent: an untrusted certificate or refused credentials. Unreachable brokers are not an
 * error, because the clients wait for them.
 */
export async function checkBrokers(
  kafka: KafkaClient,
  { ssl, sasl }: Pick<KafkaOptions, 'ssl' | 'sasl'>,
): Promise<void> {
  if (!ssl && !sasl) return;
  try {
    await kafka.withAdmin((admin) => admin.describeCluster(), timeoutMs);
  } catch (error) {
    const fault = settingAtFault(error);
    if (fault !== undefined) throw new Error(fault, { cause: error });
  }
}

/** Returns the setting that causes a connection failure and why, or undefined if the failure may be temporary. */
function settingAtFault(error: unknown): string | undefined {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    const { name, message } = cause;
    const code = String((cause as { code?: unknown }).code ?? '');
    if (name === 'KafkaJSSASLAuthenticationError')
      return `KAFKA_SASL_USERNAME or KAFKA_SASL_PASSWORD: the broker rejects the login (${message})`;
    if (/^KafkaJSUnsupported/.test(name) || /does not support the .* mechanism|mechanism.*not supported/i.test(message))
      return `KAFKA_SASL_MECHANISM: the broker does not support this mechanism (${message})`;
    if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
      return `KAFKA_BROKERS: the certificate of the broker is for another name (${message})`;
    if (/CERT|VERIFY|ISSUER/.test(code))
      return `KAFKA_SSL_CA: the certificate of the broker is not trusted (${message})`;
    if (/WRONG_VERSION|PACKET_LENGTH|ERR_SSL/.test(code))
      return `KAFKA_SSL_CA: the broker does not speak TLS on this port, or rejects the connection (${message})`;
  }
  return undefined;
}
