"""A pytest plugin that runs the tests/system of google-cloud-storage against this server.

The plugin skips tests of services that this server does not have, each with a reason. It also enables the tests that
the suite skips if the endpoint is not Google's. It changes nothing else.

  API_ENDPOINT_OVERRIDE=http://127.0.0.1:PORT GOOGLE_APPLICATION_CREDENTIALS=KEY_FILE GOOGLE_CLOUD_PROJECT=demo \\
    GOOGLE_CLOUD_TESTS_USER_PROJECT=demo PYTHONPATH=<this folder> \\
    pytest -p storage_conftest <sdist>/tests/system/test_{_signing,blob,bucket,client,fileio,transfer_manager}.py
"""

import sys

import pytest

NOT_APPLICABLE = {
    "access lists and IAM: security rules and administrators control access instead": """
        test_blob_acl_w_user_project test_blob_acl_w_metageneration_match test_blob_acl_upload_predefined
        test_blob_upload_from_string_w_owner test_bucket_get_set_iam_policy test_bucket_acls_iam_w_user_project
        test_bucket_acls_w_metageneration_match test_new_bucket_w_ubla test_ubla_set_unset_preserves_acls
        test_new_bucket_created_w_inherited_pap""",
    "encryption keys of customers or of Cloud KMS: rejected": """
        test_large_file_write_from_stream_w_encryption_key test_blob_rewrite_new_blob_add_key
        test_blob_rewrite_rotate_key test_blob_rewrite_add_key_w_user_project
        test_blob_rewrite_rotate_key_w_user_project test_upload_chunks_concurrently_with_encryption_key
        test_upload_chunks_concurrently_with_kms test_create_bucket_with_encryption_enforcement
        test_bucket_encryption_enforcement_config test_delete_bucket_encryption_enforcement_config
        test_create_signed_read_url_v2_w_csek test_create_signed_read_url_v4_w_csek""",
    "object contexts: rejected": """
        test_blob_compose_w_destination_contexts test_blob_rewrite_w_destination_contexts test_blob_contexts
        test_blob_contexts_custom_setter test_bucket_copy_blob_w_destination_contexts
        test_bucket_list_blobs_w_filter""",
    "retention, locks and holds: rejected": """
        test_object_retention_lock test_bucket_update_retention_period test_delete_object_bucket_w_retention_period
        test_bucket_w_default_event_based_hold test_blob_w_temporary_hold test_bucket_lock_retention_policy""",
    "soft delete: rejected; a bucket can keep versions instead": """
        test_soft_delete_policy test_restore_bucket""",
    "hierarchical namespaces and managed folders: not supported": """
        test_bucket_move_blob_hns test_new_bucket_with_hierarchical_namespace
        test_bucket_list_blobs_include_managed_folders""",
    "the XML API (multipart uploads, forms with signed policies): not supported": """
        test_upload_chunks_concurrently test_upload_chunks_concurrently_with_metadata
        test_upload_chunks_concurrently_with_content_encoding
        test_upload_chunks_concurrently_with_quoted_blob_names
        test_generate_signed_post_policy_v4 test_generate_signed_post_policy_v4_access_token_sa_email
        test_generate_signed_post_policy_v4_invalid_field""",
    "regions, replication and IP filters: not supported": """
        test_create_bucket_dual_region test_new_bucket_with_rpo
        test_bucket_ip_filter_patch""",
    "services of Google: a public bucket, the service account, IAM signatures, other clouds": """
        test_create_signed_read_url_v2_w_access_token test_create_signed_read_url_v4_w_access_token
        test_create_signed_read_url_v4_w_access_token_universe_domain
        test_anonymous_client_access_to_public_bucket test_get_service_account_email test_client_universe_domain""",
}


def pytest_collection(session):
    """Runs before the test modules are imported, because they check then whether the endpoint is Google's."""
    for name, module in list(sys.modules.items()):
        if name.endswith("system._helpers"):
            module.is_api_endpoint_override = False


def pytest_collection_modifyitems(items):
    reasons = {test: reason for reason, tests in NOT_APPLICABLE.items() for test in tests.split()}
    names = {item.originalname for item in items}
    if len(names) > 100 and (gone := sorted(set(reasons) - names)):
        raise pytest.UsageError(f"storage_conftest names tests that do not exist: {', '.join(gone)}")
    for item in items:
        if reason := reasons.get(item.originalname):
            item.add_marker(pytest.mark.skip(reason=f"not applicable: {reason}"), append=False)
