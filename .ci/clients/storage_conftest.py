"""Runs google-cloud-storage's own tests/system against a server of ours, as a plugin of pytest.

It skips, each with a reason, what concerns services that this server does not have; it lets run what the suite skips
as soon as the endpoint is not Google's; and it changes nothing else.

  API_ENDPOINT_OVERRIDE=http://127.0.0.1:PORT GOOGLE_APPLICATION_CREDENTIALS=KEY_FILE GOOGLE_CLOUD_PROJECT=demo \\
    GOOGLE_CLOUD_TESTS_USER_PROJECT=demo PYTHONPATH=<this folder> \\
    pytest -p storage_conftest <sdist>/tests/system/test_{blob,bucket,client,fileio,transfer_manager}.py
"""

import sys

import pytest

NOT_APPLICABLE = {
    "access lists and IAM: rules and administrators decide who reads what": """
        test_blob_acl_w_user_project test_blob_acl_w_metageneration_match test_blob_acl_upload_predefined
        test_blob_upload_from_string_w_owner test_bucket_get_set_iam_policy test_bucket_acls_iam_w_user_project
        test_bucket_acls_w_metageneration_match test_new_bucket_w_ubla test_ubla_set_unset_preserves_acls
        test_new_bucket_created_w_inherited_pap""",
    "encryption keys of customers, or of Google's key service: refused": """
        test_large_file_write_from_stream_w_encryption_key test_blob_rewrite_new_blob_add_key
        test_blob_rewrite_rotate_key test_blob_rewrite_add_key_w_user_project
        test_blob_rewrite_rotate_key_w_user_project test_upload_chunks_concurrently_with_encryption_key
        test_upload_chunks_concurrently_with_kms test_create_bucket_with_encryption_enforcement
        test_bucket_encryption_enforcement_config test_delete_bucket_encryption_enforcement_config""",
    "object contexts: refused": """
        test_blob_compose_w_destination_contexts test_blob_rewrite_w_destination_contexts test_blob_contexts
        test_blob_contexts_custom_setter test_bucket_copy_blob_w_destination_contexts
        test_bucket_list_blobs_w_filter""",
    "retention, locks and holds: refused": """
        test_object_retention_lock test_bucket_update_retention_period test_delete_object_bucket_w_retention_period
        test_bucket_w_default_event_based_hold test_blob_w_temporary_hold test_bucket_lock_retention_policy""",
    "soft delete: refused; buckets may keep versions instead": """
        test_soft_delete_policy test_restore_bucket""",
    "hierarchical namespaces and managed folders": """
        test_bucket_move_blob_hns test_new_bucket_with_hierarchical_namespace
        test_bucket_list_blobs_include_managed_folders""",
    "uploads in parts by the XML API": """
        test_upload_chunks_concurrently test_upload_chunks_concurrently_with_metadata
        test_upload_chunks_concurrently_with_content_encoding
        test_upload_chunks_concurrently_with_quoted_blob_names""",
    "regions, replication, storage classes that change by themselves, filters by address": """
        test_create_bucket_dual_region test_new_bucket_with_rpo test_new_bucket_with_autoclass
        test_config_autoclass_w_existing_bucket test_bucket_ip_filter_patch""",
    "Google's own: a public bucket, the service's account, other clouds": """
        test_anonymous_client_access_to_public_bucket test_get_service_account_email test_client_universe_domain""",
}


def pytest_collection(session):
    """Before the test modules are imported: they ask then whether the endpoint is Google's."""
    for name, module in list(sys.modules.items()):
        if name.endswith("system._helpers"):
            module.is_api_endpoint_override = False


def pytest_collection_modifyitems(items):
    reasons = {test: reason for reason, tests in NOT_APPLICABLE.items() for test in tests.split()}
    names = {item.originalname for item in items}
    if len(names) > 100 and (gone := sorted(set(reasons) - names)):
        raise pytest.UsageError(f"storage_conftest names tests that are not there: {', '.join(gone)}")
    for item in items:
        if reason := reasons.get(item.originalname):
            item.add_marker(pytest.mark.skip(reason=f"not applicable: {reason}"), append=False)
